"""Loading: what `add_many` takes, cut into chunks of leaf rows.

Texts are parsed in this process, or, when there are many, in one process per core (`parsing`).  A
table of predicates needs no parsing: its columns become leaf rows directly
(`predicate_tables`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from matchwood.encode.frames import collected
from matchwood.encode.leaves import LeafBatch
from matchwood.engine.input.fields import (
    FIELDS,
    JSON_COLUMN,
    KEEP,
    NO_FIELDS,
    FieldColumns,
    read_columns,
)
from matchwood.engine.input.parsing import parse_chunks
from matchwood.engine.matches import plain_id, plain_ids
from matchwood.errors import MatchwoodError, PositionedError, SubscriptionError
from matchwood.lang.nodes import Boolean

if TYPE_CHECKING:
    import pyarrow as pa

    from matchwood.engine.input.predicate_texts import TableTexts

CHUNK = 20_000


class Refused(NamedTuple):
    """A subscription that was refused, and why."""

    row: int
    id: Any
    error: Exception


@dataclass
class BatchReport:
    """The result of a batch: how many were added, and the refused ones."""

    count: int = 0
    errors: list[Refused] = field(default_factory=list)

    def take(self, chunk: Chunk, count: int) -> None:
        self.count = count
        for row, error in sorted(chunk.refused.items()):
            self.errors.append(Refused(chunk.first + row, chunk.ids[row], error))

    def refuse(
        self, refused: Mapping[int, Exception], slots: Any, rows: list[int], ids: Any
    ) -> None:
        """Move what indexes refused, by slot, from the added to the refused."""
        if refused:
            self.count -= len(refused)
            added = zip(slots.tolist(), rows, ids.tolist(), strict=True)
            self.errors += [Refused(row, id_, refused[s]) for s, row, id_ in added if s in refused]
            self.errors.sort(key=lambda each: each.row)


@dataclass
class Chunk:
    """Some subscriptions of a batch: leaf rows for those that could be read."""

    first: int
    ids: Sequence[Any]
    texts: Sequence[str] | TableTexts
    batch: LeafBatch
    rows: Sequence[int]  # row of each expression of `batch`
    refused: dict[int, Exception]
    done: int
    total: int
    contexts: Sequence[Any] | None = None
    fields: FieldColumns = NO_FIELDS
    order: Any = None
    """Numbers in the order of addition, where they are not the next ones."""
    omitted: Mapping[str, set[int]] = field(default_factory=dict)
    """By field, the rows that do not give it although others do."""

    def given(self, row: int) -> FieldColumns:
        """The fields that one row gives."""
        left: dict[str, Any] = {name: None for name, rows in self.omitted.items() if row in rows}
        if "attributes" in left:
            left["types"] = None
        return self.fields.part([row])._replace(**left)

    def texts_of(self, rows: Sequence[int]) -> list[str] | pa.Array:
        """The texts of some rows; those of a predicate table are written now."""
        texts = self.texts
        return [texts[row] for row in rows] if isinstance(texts, Sequence) else texts.take(rows)

    def placed(self, row: int, error: MatchwoodError) -> MatchwoodError:
        """An error with its position in the text; predicate tables have none."""
        is_placed = isinstance(self.texts, Sequence) and isinstance(error, PositionedError)
        return error.at(self.texts[row]) if is_placed else error  # type: ignore[attr-defined, index]


def load_batches(subscriptions: Any, processes: int | None) -> Iterator[Chunk]:
    """Cut any accepted form of subscriptions into chunks."""
    subscriptions = collected(subscriptions)
    if hasattr(subscriptions, "__arrow_c_stream__") or hasattr(subscriptions, "__arrow_c_array__"):
        from matchwood.encode.arrow.tables import as_table, readable_table
        from matchwood.encode.arrow.values import python_values

        table = as_table(subscriptions)
        if table is None:
            raise SubscriptionError("expected columns of one type each, found mixed objects")
        is_json = {field.name for field in table.schema if field.metadata == JSON_COLUMN}
        table = readable_table(table)
        if "attribute" in table.column_names:
            from matchwood.engine.input.predicate_tables import load_predicates

            yield from load_predicates(table)
            return
        if not {"id", "expr"} <= set(table.column_names):
            raise SubscriptionError(
                "expected columns id and expr, or id, attribute, operator and value, "
                f"found {', '.join(table.column_names)}"
            )
        ids, texts = python_ids(table.column("id")), python_values(table.column("expr"))
        contexts = None
        if "context" in table.column_names:
            contexts = python_ids(table.column("context"))
        fields = field_columns(table, is_json)
    else:
        ids, texts, contexts, fields = _pairs(subscriptions)
    yield from chunks_of_texts(ids, texts, contexts, processes, fields)


def python_ids(column: Any) -> list[Any]:
    """Ids of a column; a struct of `int` and `str` holds both (`matches.ids_to_arrow`)."""
    import pyarrow as pa

    from matchwood.encode.arrow.values import python_values

    ids = python_values(column)
    return plain_ids(ids) if pa.types.is_struct(column.type) else ids


def field_columns(table: pa.Table, is_json: Collection[str] = ()) -> dict[str, Any]:
    """The columns of a table that are fields; JSON of `Matcher.to_arrow` as what it stands for."""
    import json

    found = {name: table.column(name) for name in FIELDS if name in table.column_names}
    if "payload" in found and "payload" in is_json:
        texts = found["payload"].to_pylist()
        found["payload"] = [None if text is None else json.loads(text) for text in texts]
    return found


def _pairs(
    subscriptions: Iterable[Any],
) -> tuple[list[Any], list[Any], list[Any] | None, dict[str, list[Any]]]:
    """Ids, expressions, contexts and fields of pairs, (id, text, context) triples, or mappings.

    A mapping has `id`, `expr` and perhaps `context` and fields (`fields.FIELDS`).
    """
    if isinstance(subscriptions, (str, bytes)) or not isinstance(subscriptions, Iterable):
        raise SubscriptionError(
            "expected a table or an iterable of (id, text) pairs, "
            f"found {type(subscriptions).__name__}"
        )
    if isinstance(subscriptions, Mapping):
        subscriptions = subscriptions.items()
    ids, texts, contexts = [], [], []
    fields: dict[str, list[Any]] = {}
    for each in subscriptions:
        if isinstance(each, Mapping) and {"id", "expr"} <= each.keys():
            ids.append(each["id"])
            texts.append(each["expr"])
            contexts.append(each.get("context"))
            for name in FIELDS:
                if name in each:
                    column = fields.setdefault(name, [])
                    column += [KEEP] * (len(ids) - 1 - len(column))
                    column.append(each[name])
        elif isinstance(each, (tuple, list)) and len(each) in (2, 3):
            ids.append(each[0])
            texts.append(each[1])
            contexts.append(each[2] if len(each) == 3 else None)
        else:
            raise SubscriptionError(
                f"expected (id, text) pairs, found {str(each)[:60]!r} at row {len(ids)}"
            )
    for column in fields.values():
        column += [KEEP] * (len(ids) - len(column))
    if not set(map(type, ids)) <= {int, str}:
        ids = [plain_id(each) for each in ids]
    return ids, texts, contexts if any(each is not None for each in contexts) else None, fields


def numbered(chunks: Iterable[Chunk], order: Any) -> Iterator[Chunk]:
    """Chunks of rows whose numbers in the order of addition are known."""
    for chunk in chunks:
        chunk.order = order[chunk.first : chunk.first + len(chunk.ids)]
        yield chunk


def chunks_of_texts(
    ids: list[Any],
    texts: list[Any],
    contexts: list[Any] | None,
    processes: int | None = None,
    fields: Mapping[str, Any] | FieldColumns = NO_FIELDS,
) -> Iterator[Chunk]:
    """Chunks of texts or trees; `processes` is how many parse them, by default as many as pay.

    fields  columns as users give them, by name, or read ones
    """
    starts = range(0, len(texts), CHUNK)
    parsed = parse_chunks((texts[at : at + CHUNK] for at in starts), len(texts), processes)
    for first, (batch, rows, refused) in zip(starts, parsed, strict=True):
        last = min(first + CHUNK, len(texts))
        kept = [
            str(each.expression()) if isinstance(each, Boolean) else each
            for each in texts[first:last]
        ]
        linked = None if contexts is None else contexts[first:last]
        omitted: dict[str, set[int]] = {}
        if isinstance(fields, FieldColumns):
            read = fields.part(range(first, last))
        else:
            columns = {name: column[first:last] for name, column in fields.items()}
            for name, column in columns.items():
                if isinstance(column, list):
                    omitted[name] = {row for row, value in enumerate(column) if value is KEEP}
                    columns[name] = [None if value is KEEP else value for value in column]
            read = read_columns(columns, refused)
        yield Chunk(
            first, ids[first:last], kept, batch, rows, refused, last, len(texts), linked, read,
            omitted=omitted,
        )  # fmt: skip
