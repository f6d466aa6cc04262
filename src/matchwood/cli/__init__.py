"""The command `matchwood`: arguments and presentation; docs/cli.md describes it."""

from __future__ import annotations


def main() -> None:
    """The entry point."""
    from matchwood.cli.app import app

    app(prog_name="matchwood")
