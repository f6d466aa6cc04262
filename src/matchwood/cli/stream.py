"""`matchwood stream`: a log of subscriptions and events from files or Kafka, matches to files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from matchwood.cli.screen import Json, print_json, refuse
from matchwood.cli.spark_session import Master, spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RECORD = (
    "offset BIGINT, kind STRING, id STRING, expr STRING, context STRING, "
    "attributes MAP<STRING, STRING>"
)


def stream(
    out: Annotated[str, typer.Option(help="The folder for matches and errors.")],
    state: Annotated[str, typer.Option(help="The folder of the stream's state.")],
    log: Annotated[
        str | None, typer.Option(help="A folder that gets files of JSON lines.", show_default=False)
    ] = None,
    kafka: Annotated[
        str | None, typer.Option(help="Kafka servers, as host:port.", show_default=False)
    ] = None,
    topic: Annotated[
        str | None, typer.Option(help="The topic, of one partition.", show_default=False)
    ] = None,
    subscriptions: Annotated[
        str | None,
        typer.Option(help="Those at the start: a table or a snapshot.", show_default=False),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(help="An option of Spark's source, as name=value; may be given again."),
    ] = None,
    types: Annotated[
        list[str] | None,
        typer.Option(
            "--type", help="The type of an attribute, as ctx.budget=number; may be given again."
        ),
    ] = None,
    every: Annotated[
        str, typer.Option(help="A micro-batch starts every so often, as in '2 seconds'.")
    ] = "1 second",
    once: Annotated[
        bool, typer.Option("--once", help="Stop after what is there at the start.")
    ] = False,
    late: Annotated[str, typer.Option(help="Late records: refuse or now.")] = "refuse",
    snapshot_every: Annotated[
        int, typer.Option(min=1, help="Batches between snapshots of the state.")
    ] = 50,
    take_over: Annotated[
        bool,
        typer.Option("--take-over", help="On a store: start also while another driver lives."),
    ] = False,
    master: Master = None,
    as_json: Json = False,
) -> None:
    """Match the events of a log, each with the subscriptions that the log had before it.

    A record is a JSON object: offset, kind (subscribe, unsubscribe, context, event), id, expr,
    context, attributes.
    From Kafka the offset is Kafka's.  Ends on interrupt; starting again goes on.
    """
    if (log is None) == (kafka is None) or (kafka is None) != (topic is None):
        refuse("expected either --log FOLDER, or --kafka SERVERS and --topic NAME")
    options, schema = _pairs("--option", option), _pairs("--type", types)
    from matchwood.spark import match_stream

    trigger: dict[str, Any] = {"availableNow": True} if once else {"processingTime": every}
    with spark_session(master) as spark:
        records = _files(spark, log, options) if log else _kafka(spark, kafka, topic, options)
        start = _subscriptions(spark, subscriptions)
        query = match_stream(
            records, out, state,
            subscriptions=start, schema=schema, late=late, snapshot_every=snapshot_every,
            trigger=trigger, take_over=take_over,
        )  # fmt: skip
        try:
            _follow(query)
        except KeyboardInterrupt:
            query.stop()
        _report(query, as_json)


def _pairs(option: str, given: list[str] | None) -> dict[str, str]:
    pairs = {}
    for each in given or []:
        name, equals, value = each.partition("=")
        if not equals:
            refuse(f"expected name=value after {option}, found {each!r}")
        pairs[name] = value
    return pairs


_FIELDS = ("kind", "id", "expr", "context", "attributes")


def _files(spark: SparkSession, folder: str, options: dict[str, str]) -> DataFrame:
    return spark.readStream.schema(RECORD).options(**options).json(folder)


def _kafka(
    spark: SparkSession, servers: str | None, topic: str | None, options: dict[str, str]
) -> DataFrame:
    from pyspark.sql import functions as f

    defaults = {"startingOffsets": "earliest", **options}
    reader = spark.readStream.format("kafka").options(**defaults)
    reader = reader.option("kafka.bootstrap.servers", servers or "").option(
        "subscribe", topic or ""
    )
    body = f.from_json(f.col("value").cast("string"), RECORD).alias("record")
    rows = reader.load().select("offset", body)
    return rows.select("offset", *[f"record.{name}" for name in _FIELDS])


def _subscriptions(spark: SparkSession, path: str | None) -> Any:
    from matchwood.cli.spark_tables import open_subscriptions

    if path is None:
        return None
    found, problems = open_subscriptions(spark, path)
    if problems:
        refuse(f"{path}: {problems[0]['message']}")
    return found


def _follow(query: Any) -> None:
    """Wait for the end, showing batches on a terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    shown = -1
    while not query.awaitTermination(1):
        last = query.lastProgress
        if console.is_terminal and last and last["batchId"] > shown:
            shown = last["batchId"]
            rate = last.get("processedRowsPerSecond") or 0
            console.print(
                f"batch {shown}: {last['numInputRows']:,} records, {rate:,.0f} /s", highlight=False
            )


def _report(query: Any, as_json: bool) -> None:
    batches = [each for each in query.recentProgress if each["numInputRows"]]
    records = sum(each["numInputRows"] for each in batches)
    seconds = sum(each["durationMs"]["triggerExecution"] for each in batches) / 1000
    found = {"batches": len(batches), "records": records, "seconds": round(seconds, 3)}
    if as_json:
        print_json(found)
    else:
        typer.echo(f"{records:,} records in {len(batches):,} batches, {seconds:.1f} s of work")
