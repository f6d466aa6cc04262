"""The suite `speed`: what a user waits for, compared with a goal and with other ways, in one run.

    matchwood bench run --suite speed --preset small

    goals        the rows: what was measured before, the goal, and which way is better
    user_cases   dicts, JSON lines, texts: through the public verbs of a `Matcher`
    computed_case  six computed attributes, compared with plain ones of the same values
    index_cases  a million conjunctions; compared with counting in NumPy, DuckDB and `scan`
    planned_cases  trees, conjunctions in indexes for trees, ten times as many subscriptions
    roofline     what a search reads, and how fast this machine reads
    runner       runs the cases; the report and its table

Answers are compared before a time is kept.  Times are those of the thread: other processes do not
count, their use of memory and caches does.  Events are distinct unless a row says otherwise.
"""

from __future__ import annotations

from matchwood.bench.suite import Listed

NAME = "speed"
LISTED = Listed(NAME, "what a user waits for: before, goal, now, met or missed", ("smoke", "small"))
