"""`matchwood bench`: run the benchmarks; `matchwood.bench` does the work."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from matchwood.cli.screen import Json, note, print_json, progress, refuse, screen

if TYPE_CHECKING:
    from matchwood.bench.suite import Listed

app = typer.Typer(
    help="Measure indexes on generated workloads; every answer is checked first.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


def _suites() -> list[Listed]:
    """All suites, those that are files and those that are programs."""
    from matchwood import bench
    from matchwood.bench import engine, papers, spark_suite, speed

    others = (spark_suite.LISTED, speed.LISTED, engine.LISTED)
    return [*bench.list_suites(), *papers.LISTED, *others]


@app.command("list")
def list_suites(as_json: Json = False) -> None:
    """List the suites and their presets."""
    suites = _suites()
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
    case: Annotated[
        list[str] | None,
        typer.Option(
            help="Suites papers, speed and engine: only this case (be_tree/5a, json, open); "
            "again for more."
        ),
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(help="Suite papers: stop after so long; run again to go on.")
    ] = None,
    jobs: Annotated[
        int,
        typer.Option(help="Suite papers: points measured side by side; at most the idle cores."),
    ] = 1,
    seed: Annotated[int | None, typer.Option(help="Seed of the workloads.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="A .json file (papers: .jsonl) or a folder for the result.",
            show_default="bench-results",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run a suite, show its table and write its result as JSON."""
    from matchwood import bench
    from matchwood.bench import engine, papers, spark_suite, speed

    if suite in (papers.NAME, papers.EXTERNAL):
        from matchwood.bench.papers.summary import as_data, as_text

        with progress("benchmark") as advance:
            results = papers.run_papers(
                preset,
                out,
                lambda _what, done, total: advance(done, total),
                only=case or (),
                seed=seed,
                minutes=minutes,
                suite=suite,
                jobs=jobs,
            )
        if as_json:
            print_json(as_data(results))
        else:
            typer.echo(as_text(results))
        return
    if suite == spark_suite.NAME:
        with progress("benchmark") as advance:
            found = spark_suite.run_spark_suite(preset, out, advance, tuple(index or ()), note)
        typer.echo(found.to_json() if as_json else found.table())
        return
    if suite == speed.NAME:
        from matchwood.bench.speed.runner import run_speed

        with progress("benchmark") as advance:
            one = (index or ["auto"])[0]
            timed = run_speed(preset, out, advance, one, tuple(case or ()), note)
        typer.echo(timed.to_json() if as_json else timed.table())
        return
    if suite == engine.NAME:
        from matchwood.bench.engine.runner import run_engine

        with progress("benchmark") as advance:
            seen = run_engine(preset, out, advance, only=tuple(case or ()), show=note)
        typer.echo(seen.to_json() if as_json else seen.table())
        return
    names = [each.name for each in _suites()]
    if suite not in names and not suite.endswith(".toml"):
        refuse(
            f"expected a suite among {', '.join(names)}, or a .toml file, found {suite!r}: "
            "`matchwood bench list` describes them"
        )
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


@app.command()
def report(
    results: Annotated[Path, typer.Argument(help="The .jsonl file of a run of the suite papers.")],
    out: Annotated[Path, typer.Option(help="The HTML page to write.")] = Path("papers.html"),
    pictures: Annotated[
        Path | None, typer.Option(help="A folder for an SVG and a PNG of every panel.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Also write the verdicts as Markdown (docs/results.md).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write one HTML page with every panel, its claims and its verdict."""
    from matchwood.bench.papers.page import write_page, write_pictures
    from matchwood.bench.papers.rows import Results
    from matchwood.bench.papers.summary import as_data, as_text, write_markdown

    found = Results.read(results)
    write_page(found, out)
    if pictures is not None:
        write_pictures(found, pictures)
    if markdown is not None:
        write_markdown(found, markdown)
    if as_json:
        print_json(as_data(found))
    else:
        typer.echo(f"{as_text(found)}\npage: {out}")


@app.command()
def compare(
    before: Annotated[Path, typer.Argument(help="The .jsonl file of a run.")],
    after: Annotated[Path, typer.Argument(help="The file of another run of the same preset.")],
    metric: Annotated[str, typer.Option(help="What to compare.")] = "us_per_event",
    as_json: Json = False,
) -> None:
    """Compare two runs of the suite papers row by row; small differences are noise."""
    from matchwood.bench.papers.compare import as_text, compare_runs
    from matchwood.bench.papers.rows import Results

    found = compare_runs(Results.read(before), Results.read(after), metric)
    if as_json:
        print_json([each._asdict() for each in found])
    else:
        typer.echo(as_text(found))
