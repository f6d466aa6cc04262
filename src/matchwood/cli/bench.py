"""`matchwood bench`: run the benchmarks; `matchwood.bench` does the work."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from matchwood.cli.screen import Json, print_json, progress, screen

app = typer.Typer(
    help="Measure indexes on generated workloads; every answer is checked first.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("list")
def list_suites(as_json: Json = False) -> None:
    """List the suites and their presets."""
    from matchwood import bench
    from matchwood.bench import spark_suite

    suites = [*bench.list_suites(), spark_suite.LISTED]
    if as_json:
        print_json([{"name": each.name, "description": each.description,
                     "presets": list(each.presets)} for each in suites])  # fmt: skip
        return
    for each in suites:
        typer.echo(f"{each.name}: {each.description}\n  presets: {', '.join(each.presets)}")


@app.command()
def run(
    suite: Annotated[str, typer.Option(help="The name of a suite, or a .toml file.")],
    preset: Annotated[str, typer.Option(help="How much of it to run.")] = "smoke",
    index: Annotated[
        list[str] | None, typer.Option(help="Only this index; may be given again.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the workloads.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="A .json file or a folder for the result.", show_default="bench-results"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run a suite, show its table and write its result as JSON."""
    from matchwood import bench
    from matchwood.bench import spark_suite

    if suite == spark_suite.NAME:
        with progress("benchmark") as advance:
            found = spark_suite.run_spark_suite(preset, out, advance, tuple(index or ()))
        typer.echo(found.to_json() if as_json else found.table())
        return
    with progress("benchmark") as advance:
        report = bench.run_suite(
            suite,
            preset,
            out,
            progress=lambda _what, done, total: advance(done, total),
            only_indexes=index,
            seed=seed,
        )
    if as_json:
        typer.echo(report.to_json())
    else:
        screen().print(report.table())
