"""What of Spark SQL's expressions the language takes, as a table: docs/language.md holds it.

    python -m matchwood.lang.functions.reference

prints it.  A test compares the page with it and reads every example: `yes` and `differs` must be
taken, `no` must be refused.
"""

from __future__ import annotations

from matchwood.lang.functions.evaluate import FUNCTIONS

BEGIN, END = "<!-- constructs: begin -->", "<!-- constructs: end -->"

CONSTRUCTS: tuple[tuple[str, str, str, str], ...] = (
    ("`= == <> != < <= > >=`, literals and attributes on both sides", "yes", "a < b + 3", ""),
    ("`<=>`, `IS [NOT] DISTINCT FROM`", "yes", "a <=> b", ""),
    ("`AND`, `OR`, `NOT`, `!`", "yes", "NOT (a > 1 OR b)", ""),
    ("`[NOT] BETWEEN`, `[NOT] IN (list)`", "yes", "a + 1 BETWEEN b AND 5", ""),
    ("`IS [NOT] NULL`", "yes", "lower(a) IS NULL", ""),
    ("`IS [NOT] TRUE`, `FALSE`, `UNKNOWN`", "yes", "(a > 1) IS NOT TRUE", ""),
    ("`[NOT] LIKE ... [ESCAPE]`, `LIKE ANY`, `SOME`, `ALL`", "yes", "a LIKE ANY ('x%', '%y')",
     "the pattern is a constant"),
    ("`[NOT] ILIKE`", "yes", "a ILIKE 'x%'", "the pattern is a constant"),
    ("`[NOT] RLIKE`, `REGEXP`", "differs", "a RLIKE '^x+$'",
     ("the pattern is a constant; look-around, back references, `\\b`, possessive quantifiers, "
      "properties and flags but a leading `(?i)` are refused; found in linear time")),
    ("`+ - * /`, `%`, `DIV`, unary `-` and `+`", "differs", "price * qty - 1 > 0",
     ("an event's int is a BIGINT, its float a DOUBLE, its Decimal has its own digits; a string is "
      "no number without a cast")),
    ("`||`", "yes", "a || 'x' = 'bx'", "no doubles: Java's spelling of them is its own"),
    ("parentheses", "yes", "(price) > 5", ""),
    ("`CASE WHEN`, `CASE x WHEN`", "yes", "CASE a WHEN 1 THEN 'x' ELSE 'y' END = 'x'", ""),
    ("`cast(x AS type)`, `try_cast`, `int(x)`", "differs", "cast(a AS decimal(10,2)) > 1.5",
     ("int, bigint, double, decimal, string, boolean, date, timestamp; no double to string, no "
      "number to timestamp")),
    ("`a[0]`, `m['key']`", "yes", "m['key'] = a[0]", "keys of maps are constant strings"),
    ("lambdas `t -> t > 3`", "differs", "exists(a, t -> t > 3)", "in `exists` and `forall` alone"),
    ("`x::type`", "no", "a::int = 1", "write cast"),
    ("`& | ^ ~ << >>`", "no", "a & 1 = 1", ""),
    ("`INTERVAL 1 DAY`, `INTERVAL '1-2' YEAR TO MONTH`; dates and timestamps with `+` and `-`",
     "differs", "ts - INTERVAL 1 day 2 hours > b - a",
     ("times whole numbers alone, no cast, no `/`; results lie in the years 1 to 9999; the "
      "difference of two strings takes casts")),
    ("`EXTRACT(... FROM ...)`, `TRIM(BOTH ...)`, `SUBSTRING(... FROM ...)`", "no",
     "extract(YEAR FROM a) = 2026", "use year(), trim(), substr()"),
    ("aggregates, windows, subqueries, generators", "no", "count(a) > 1",
     "a condition sees one event"),
    ("current_timestamp, rand, uuid and others that are not deterministic", "no", "a > now()", ""),
)  # fmt: skip


def table() -> str:
    """The table of the documentation."""
    lines = ["| construct | supported | note |", "|---|---|---|"]
    for construct, answer, _, note in CONSTRUCTS:
        lines.append(f"| {construct.replace('|', '&#124;')} | {answer} | {note} |")
    groups: dict[str, list[str]] = {}
    for function in FUNCTIONS.values():
        if not function.name.isidentifier():
            continue
        names = [function.name, *function.aliases]
        groups.setdefault(function.group, []).append(" = ".join(f"`{name}`" for name in names))
    for group in sorted(groups):
        names_text = ", ".join(sorted(groups[group]))
        lines.append(f"| functions: {group} | yes | {names_text} |")
    lines.append("| any other function | no | refused with its name and the nearest one |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())  # noqa: T201 - that is its job
