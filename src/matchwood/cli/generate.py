"""`matchwood generate`: a workload as files, made on Spark."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from matchwood.cli.screen import Json, print_json, refuse
from matchwood.cli.spark_session import Master, job_progress, spark_session

FORMATS = ("parquet", "json")


def generate(
    workload: Annotated[str, typer.Argument(help="A workload, as name or name:preset.")],
    out: Annotated[str, typer.Option(help="The folder to write to.")],
    subscriptions: Annotated[
        int | None, typer.Option(min=0, help="How many; the workload's own number unless given.")
    ] = None,
    events: Annotated[
        int | None, typer.Option(min=0, help="How many; the workload's own number unless given.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Another seed, other rows.")] = 1,
    form: Annotated[
        str, typer.Option(help="Of subscriptions: predicates or texts.")
    ] = "predicates",
    layout: Annotated[str, typer.Option(help="Of events: arrays or wide.")] = "arrays",
    parameter: Annotated[
        list[str] | None,
        typer.Option("--set", help="A parameter, as name=value; may be given again."),
    ] = None,
    file_format: Annotated[str, typer.Option("--format", help="parquet or json.")] = "parquet",
    master: Master = None,
    as_json: Json = False,
) -> None:
    """Write the subscriptions and events of a workload to OUT/subscriptions and OUT/events.

    Every row depends on its number alone, so any number of cores and machines writes the same rows.
    """
    if file_format not in FORMATS:
        refuse(f"expected a format among {', '.join(FORMATS)}, found {file_format!r}")
    options: dict[str, Any] = {"seed": seed, "form": form, "layout": layout}
    for each in parameter or []:
        name, equals, value = each.partition("=")
        if not equals:
            refuse(f"expected name=value after --set, found {each!r}")
        options[name] = value
    options |= {"subscriptions": subscriptions} if subscriptions is not None else {}
    options |= {"events": events} if events is not None else {}
    found = _write(workload, out.rstrip("/"), options, file_format, master)
    if as_json:
        print_json(found)
        return
    for name in ("subscriptions", "events"):
        part = found[name]
        typer.echo(f"{part['rows']:>12,} {name} in {part['seconds']:.1f} s -> {part['out']}")


def _write(
    workload: str, out: str, options: dict[str, Any], file_format: str, master: str | None
) -> dict[str, Any]:
    from matchwood.spark import read_workload
    from matchwood.spark.source import Request

    plain = {
        name: value if isinstance(value, str) else str(value) for name, value in options.items()
    }
    request = Request.read({"workload": workload, **plain})  # a wrong name is an error at once
    counts = {
        "subscriptions": request.workload.n_subscriptions,
        "events": request.workload.n_events,
    }
    found: dict[str, Any] = {"workload": workload, "parameters": request.workload.parameters()}
    with spark_session(master) as spark:
        for table, count in counts.items():
            start = time.perf_counter()
            rows = read_workload(spark, workload, table, **options)
            with job_progress(spark, table):
                rows.write.mode("overwrite").format(file_format).save(f"{out}/{table}")
            seconds = round(time.perf_counter() - start, 3)
            found[table] = {"rows": count, "seconds": seconds, "out": f"{out}/{table}"}
    return found
