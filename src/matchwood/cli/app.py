"""All commands in one place, and how errors end: a sentence and an exit code, no traceback."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from matchwood.cli import bench, demo, explain, generate, kernels, match, stats, stream, validate
from matchwood.cli.screen import NO, USAGE, complain
from matchwood.cli.spark_session import spark_reason
from matchwood.errors import MatchwoodError, StorageError


class _Commands(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except StorageError as error:
            complain(str(error))
            raise typer.Exit(USAGE) from None
        except MatchwoodError as error:
            complain(str(error))
            raise typer.Exit(NO) from None
        except Exception as error:
            reason = spark_reason(error)
            if reason is None:
                raise
            complain(reason)
            raise typer.Exit(USAGE) from None


app = typer.Typer(
    cls=_Commands,
    help="Keep millions of Boolean expressions and tell, for every event, which of them hold.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            typer.echo(f"matchwood {version('matchwood')}")
        except PackageNotFoundError:
            typer.echo("matchwood, from a folder it is not installed from")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass


app.command()(demo.demo)
app.command()(generate.generate)
app.command()(match.match)
app.command()(stream.stream)
app.command()(validate.validate)
app.command()(explain.explain)
app.command()(stats.stats)
app.command()(kernels.kernels)
app.add_typer(bench.app, name="bench")
