"""What came of importing rules: subscriptions to add, and the rules that have no exact text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Id = int | str


class RefusedRule(NamedTuple):
    """A rule that was not translated.

    construct  what cannot be kept, as its system writes it: `cidr`, `$elemMatch`
    path       where it stands in the rule: `detail.source-ip[0]`
    """

    row: int
    id: Any
    construct: str
    path: str
    message: str

    def __str__(self) -> str:
        at_path = f" at {self.path}" if self.path else ""
        return f"rule {self.id!r}: {self.construct}{at_path}: {self.message}"


@dataclass
class ImportReport:
    """Rules as texts.  `Matcher.add_many` takes `subscriptions`, and the report itself."""

    format: str
    subscriptions: list[tuple[Id, str]] = field(default_factory=list)
    errors: list[RefusedRule] = field(default_factory=list)

    def __iter__(self) -> Iterator[tuple[Id, str]]:
        return iter(self.subscriptions)

    def __len__(self) -> int:
        return len(self.subscriptions)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "format": self.format,
            "subscriptions": [{"id": id_, "expr": text} for id_, text in self.subscriptions],
            "errors": [each._asdict() for each in self.errors],
        }
