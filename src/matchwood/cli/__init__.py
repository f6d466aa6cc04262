"""The command `matchwood`: arguments and presentation; docs/cli.md describes it."""

from __future__ import annotations


def main() -> None:
    """The entry point."""
    try:
        from matchwood.cli.interrupts import watch

        watch()
        from matchwood.cli.app import app

        app(prog_name="matchwood")
    except KeyboardInterrupt:  # before the command has begun, or after its end
        from matchwood.cli.screen import INTERRUPTED, complain

        complain("interrupted")
        raise SystemExit(INTERRUPTED) from None
