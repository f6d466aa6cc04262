r"""Rules of other systems as subscriptions: EventBridge patterns, query documents, JSONLogic, SQL.

    import_rules(rules, format="eventbridge")   -> ImportReport: .subscriptions, .errors

Every rule becomes a text of our language that holds for exactly the same events, or is refused with
the construct that has no exact text and its path.  docs/rules.md says what is kept of each system.

    reading       which rules there are: ids, shapes of files
    eventbridge   pattern            \
    mongo         query document      >  conditions, in two truth values  ->  texts
    jsonlogic     rule               /
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from matchwood.errors import ParseError, SubscriptionError
from matchwood.rules import eventbridge, jsonlogic, mongo
from matchwood.rules.conditions import Condition, Untranslatable
from matchwood.rules.reading import FORMATS, guessed_format, numbered
from matchwood.rules.report import ImportReport, RefusedRule

__all__ = ["FORMATS", "ImportReport", "RefusedRule", "import_rules"]


def import_rules(
    rules: Any,
    format: str | None = None,  # noqa: A002 - DESIGN's name of it
    *,
    arrays: bool | Iterable[str] = True,
    typed: bool = False,
) -> ImportReport:
    """Rules of another system as `(id, text)` pairs for `Matcher.add_many`, and what was refused.

    rules   a mapping from ids to rules, `(id, rule)` pairs, objects with an id and a rule, or rules
            alone, whose ids are then their numbers from 1; a rule may also be its JSON text.  A
            mapping that can only be one rule is taken as that
    format  eventbridge, mongo, jsonlogic or sql; guessed from the rules unless given
    arrays  whether attributes may hold lists, of which any element counts: all, none, or these;
            not for JSONLogic, where a list equals nothing
    typed   values have the type of the constants that they are compared with: shorter texts of
            negations, and JSONLogic's conversions are not needed
    """
    rows = numbered(rules)
    kind = format or guessed_format([rule for _, rule in rows])
    if kind not in FORMATS:
        raise SubscriptionError(f"expected format {', '.join(FORMATS)}, found {format!r}")
    translate = _translator(kind, arrays, typed)
    report = ImportReport(kind)
    for row, (id_, rule) in enumerate(rows):
        try:
            report.subscriptions.append((id_, translate(rule)))
        except Untranslatable as error:
            path = ".".join(error.path).replace(".[", "[")
            report.errors.append(RefusedRule(row, id_, error.construct, path, error.reason))
        except RecursionError:
            reason = "it nests too deeply"
            report.errors.append(RefusedRule(row, id_, "the rule", "", reason))
    return report


def _translator(kind: str, arrays: bool | Iterable[str], typed: bool) -> Callable[[Any], str]:
    from matchwood.rules.texts import to_text

    if kind == "sql":
        return _from_sql
    names = None if isinstance(arrays, bool) else frozenset(arrays)
    read: dict[str, Callable[[Any], Condition]] = {
        "eventbridge": eventbridge.read,
        "mongo": mongo.read,
        "jsonlogic": lambda rule: jsonlogic.read(rule, typed),
    }

    def has_list(name: str) -> bool:
        if kind == "jsonlogic":  # a list is a value of its own there
            return False
        return bool(arrays) if names is None else name in names

    return lambda rule: to_text(read[kind](rule), has_list, typed)


def _from_sql(text: Any) -> str:
    from matchwood.lang import parse

    if not isinstance(text, str):
        raise Untranslatable("the rule", (), f"expected a text, found {type(text).__name__}")
    try:
        return str(parse(text))
    except ParseError as error:
        position = (f"line {error.line}, column {error.column}",) if error.line else ()
        raise Untranslatable("the text", position, error.message) from None
