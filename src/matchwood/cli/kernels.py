"""`matchwood kernels`: what is compiled, for which CPU, and how long it takes."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from matchwood.cli.screen import Json, print_json, progress, refuse, screen

if TYPE_CHECKING:
    from matchwood.kernel.compile_times import Compiled

SHOWN = 40
"""Functions in the table that people see; --json has all."""


def kernels(
    times: Annotated[
        bool, typer.Option("--times", help="Compile all of them anew, and list the seconds.")
    ] = False,
    compile_all: Annotated[
        bool, typer.Option("--compile", help="Compile those that are not compiled yet.")
    ] = False,
    baseline: Annotated[
        str | None,
        typer.Option(help="With --compile: for this CPU baseline, into the package.",
                     show_default=False),
    ] = None,
    auto: Annotated[
        bool, typer.Option("--auto", help="Only those that `auto` and contexts use.")
    ] = False,
    demo: Annotated[
        bool, typer.Option("--demo", help="Only those that `matchwood demo` uses.")
    ] = False,
    processes: Annotated[
        int | None,
        typer.Option(min=1, help="How many processes compile; one per core unless given.",
                     show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Show where compiled kernels come from; compile them; list what compiling costs."""
    if baseline is not None and not compile_all:
        refuse("expected --baseline with --compile")
    if times and compile_all:
        refuse("expected --times or --compile, not both")
    if auto and demo:
        refuse("expected --auto or --demo, not both")
    if times:
        found = _times(processes, _steps(auto, demo))
    elif compile_all:
        found = _compile(baseline, processes, _steps(auto, demo))
    else:
        found = _state()
    if as_json:
        print_json(found)
    elif times or compile_all:
        _show(found)
    else:
        _show_state(found)


def _state() -> dict[str, Any]:
    from matchwood.kernel import store
    from matchwood.kernel.cache import cache_root

    root = cache_root()
    return {
        "made_with": list(store.made_with()),
        "package": {shelf.baseline: len(shelf.sums) for shelf in store.shelves()},
        "package_unfit": store.unfit(),
        "cache": None if root is None else str(root),
        "cached": 0 if root is None or not root.is_dir() else len(list(root.glob("*/*.nbc"))),
    }


def _steps(auto: bool, demo: bool) -> tuple[str, ...] | None:
    """The steps of the exercise that are meant; None: all."""
    from matchwood.bench.exercise import AUTO_STEPS, DEMO_STEPS

    return AUTO_STEPS if auto else DEMO_STEPS if demo else None


def _times(processes: int | None, steps: tuple[str, ...] | None) -> dict[str, Any]:
    """One process unless --processes is given: several would distort the times."""
    from matchwood.bench.compile_ahead import compile_kernels
    from matchwood.kernel import store

    with tempfile.TemporaryDirectory() as folder, progress("compiling") as advance:
        baseline = store.baselines()[0] if store.baselines() else None
        # Numba's own cache elsewhere, where there is no baseline to compile for.
        return _summary(
            compile_kernels(
                baseline,
                Path(folder),
                steps=steps,
                processes=processes or 1,
                advance=advance,
                environment={"NUMBA_CACHE_DIR": folder},
            )
        )


def _compile(
    baseline: str | None, processes: int | None, steps: tuple[str, ...] | None
) -> dict[str, Any]:
    from matchwood.bench.compile_ahead import compile_kernels
    from matchwood.kernel import store

    if baseline == "best":
        baseline = store.best_baseline()
    with progress("compiling") as advance:
        return _summary(
            compile_kernels(baseline, steps=steps, processes=processes, advance=advance)
        )


def _summary(compiled: list[Compiled]) -> dict[str, Any]:
    """By function: how often it was compiled, and how long that took."""
    by_function: dict[tuple[str, str], list[Compiled]] = defaultdict(list)
    for each in compiled:
        by_function[each.module, each.function].append(each)
    rows: list[dict[str, Any]] = [
        {
            "module": module,
            "function": function,
            "variants": len(variants),
            "front_end": round(sum(each.front_end for each in variants), 3),
            "llvm": round(sum(each.llvm for each in variants), 3),
            "signatures": [each.signature for each in variants],
        }
        for (module, function), variants in by_function.items()
    ]
    rows.sort(key=lambda row: -(row["front_end"] + row["llvm"]))
    return {
        "functions": len(rows),
        "compilations": len(compiled),
        "front_end": round(sum(each.front_end for each in compiled), 1),
        "llvm": round(sum(each.llvm for each in compiled), 1),
        "kernels": rows,
    }


def _show(found: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("function")
    for name in ("variants", "front end s", "LLVM s"):
        table.add_column(name, justify="right")
    for row in found["kernels"][:SHOWN]:
        name = f"{row['module'].removeprefix('matchwood.')}.{row['function']}"
        figures = (str(row["variants"]), f"{row['front_end']:.2f}", f"{row['llvm']:.2f}")
        table.add_row(name, *figures)
    if found["kernels"]:
        screen().print(table)
    more = len(found["kernels"]) - SHOWN
    if more > 0:
        typer.echo(f"... and {more} more; --json lists all")
    typer.echo(
        f"{found['functions']} functions, {found['compilations']} compilations: "
        f"{found['front_end']} s front end, {found['llvm']} s LLVM"
    )


def _show_state(found: dict[str, Any]) -> None:
    for baseline, n in found["package"].items():
        typer.echo(f"in the package: {n} kernels for {baseline}")
    if found["package_unfit"]:
        typer.echo(f"in the package: none that fit; {found['package_unfit']}")
    elif not found["package"]:
        typer.echo("in the package: none")
    typer.echo(f"in the cache: {found['cached']} kernels, {found['cache'] or 'no private folder'}")
    typer.echo(f"this process: {', '.join(found['made_with'])}")
