"""What the demo shows: a table, a few lines, two explained answers and, at the end, a picture."""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table

from matchwood.cli.demo_job import Demo

BAR = 40


def introduce(show: Console, n_subscriptions: int, n_events: int, judge: str) -> None:
    show.print(
        f"A bookshop: {n_subscriptions:,} readers say what they look for, {n_events:,} books are "
        f"offered.\nFor every book, Matchwood tells which readers want it. Then {judge} is asked "
        "the same\nabout a sample, and the two must agree."
    )


def report(show: Console, demo: Demo) -> None:
    show.print()
    show.print(_figures(demo))
    _check_line(show, demo)
    _busiest(show, demo)
    _explained(show, demo)
    _histogram(show, demo.per_event)


def _figures(demo: Demo) -> Table:
    counts, seconds = demo.per_event, demo.seconds
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column()
    table.add_column(justify="right")
    table.add_column()
    rows = [
        ("subscriptions added", f"{demo.subscriptions / seconds['add']:,.0f} /s",
         f"{seconds['add']:.1f} s, from text to index"),
        ("events matched", f"{demo.events / seconds['match']:,.0f} /s",
         f"{seconds['match']:.1f} s, {1e3 * seconds['match'] / demo.events:.2f} ms per event"),
        ("matches per event", f"{counts.mean():,.1f}",
         f"{demo.matches:,} in all, median {np.median(counts):,.0f}, largest {counts.max():,}"),
        ("bytes per subscription", f"{demo.bytes_per_subscription:,.0f}",
         f"text included; {demo.predicates:,} distinct predicates"),
        ("making the workload", f"{seconds['generate']:.1f} s", f"seed {demo.seed}"),
    ]  # fmt: skip
    if "compile" in seconds:
        compiled = f"{seconds['compile']:.1f} s"
        rows.append(("compiling", compiled, "once per installation, not counted above"))
    else:
        rows.append(("starting Spark", f"{seconds['start']:.1f} s", "not counted above"))
    for row in rows:
        table.add_row(*row)
    return table


def _check_line(show: Console, demo: Demo) -> None:
    check = demo.check
    verdict = "agrees" if not check["differences"] else f"DIFFERS {check['differences']:,} times"
    show.print(
        f"{check['against']} {verdict} on {check['pairs']:,} pairs of subscription and event, "
        f"{check['matches']:,} of them matches ({demo.seconds['check']:.1f} s)."
    )


def _histogram(show: Console, counts: np.ndarray) -> None:
    """Events by their number of matches, in ranges that double."""
    show.print("\nMatches per event")
    top = int(counts.max()).bit_length()
    ranges = [(0, 0)] + [(1 << n, (2 << n) - 1) for n in range(top)]
    sizes = [int(((counts >= low) & (counts <= high)).sum()) for low, high in ranges]
    for (low, high), size in zip(ranges, sizes, strict=True):
        label = f"{low:,}" if low == high else f"{low:,} - {high:,}"
        bar = "█" * max(size > 0, round(BAR * size / max(sizes)))
        show.print(f"{label:>15}  {bar} {size:,}")


def _busiest(show: Console, demo: Demo) -> None:
    show.print("\nBusiest subscriptions")
    for id_, n, text in demo.busiest:
        show.print(f"{n:>8,} events  {id_}: {text}")


def _explained(show: Console, demo: Demo) -> None:
    for title, explanation in (("A match", demo.hit), ("No match for the same book", demo.miss)):
        if explanation is not None:
            show.print(f"\n{title}")
            show.print(str(explanation))
