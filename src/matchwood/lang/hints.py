"""What to write instead of constructs that the language does not have."""

from __future__ import annotations

_NOW = (
    "the answer would depend on when it is asked: put the time into the event, or compare with a "
    "TIMESTAMP literal"
)
NOT_DETERMINISTIC = {
    **dict.fromkeys(("CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME", "NOW", "CURDATE",
                     "LOCALTIMESTAMP", "UNIX_TIMESTAMP"), _NOW),
    **dict.fromkeys(("RAND", "RANDN", "RANDOM", "UUID", "SHUFFLE", "MONOTONICALLY_INCREASING_ID"),
                    "the answer would differ from time to time: put the number into the event"),
}  # fmt: skip
AGGREGATES = frozenset((
    "COUNT", "SUM", "AVG", "MEAN", "MIN", "MAX", "STDDEV", "VARIANCE", "COLLECT_LIST",
    "COLLECT_SET", "FIRST", "LAST", "ANY_VALUE", "MEDIAN", "PERCENTILE", "ROW_NUMBER", "RANK",
    "DENSE_RANK", "LAG", "LEAD", "NTILE", "APPROX_COUNT_DISTINCT", "MAX_BY", "MIN_BY",
))  # fmt: skip
_BITS = "; operators on bits are not supported"
SECOND_LOOK = {
    "&&": "write AND", "&": f"write AND{_BITS}", "|": f"write OR{_BITS}",
    "^": f"write XOR{_BITS}",
    "::": "write cast(x AS type)", ";": "write one expression, without a semicolon",
}  # fmt: skip
