"""What a workload is: see the package's docstring for the manual."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from matchwood.encode.schema import Schema
from matchwood.errors import MatchwoodError

if TYPE_CHECKING:
    import pyarrow as pa

    from matchwood.encode.leaves import LeafBatch


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Subscriptions and events that follow from a few parameters and a seed.

    A generator subclasses this with its own parameters as fields.  The two sizes say how many rows
    belong to the workload; a row does not depend on them unless the generator says so.
    """

    name: ClassVar[str]
    presets: ClassVar[Mapping[str, Mapping[str, Any]]]
    """Parameters by preset; each generator has at least `smoke` and `small`."""

    n_subscriptions: int = 10_000
    n_events: int = 200
    seed: int = 1

    def schema(self) -> Schema:
        """The types of all attributes."""
        raise NotImplementedError

    def subscriptions(self, first: int, last: int) -> pa.Table:
        """Rows first .. last - 1: a predicate table, or, for trees, columns `id` and `expr`."""
        raise NotImplementedError

    def leaf_rows(self, first: int, last: int) -> LeafBatch | None:
        """The same rows as the encoder takes them, for trees: texts take long to read."""
        return None

    def events(self, first: int, last: int) -> pa.Table:
        """Rows first .. last - 1: a table of entries (see `tables`)."""
        raise NotImplementedError

    def parameters(self) -> dict[str, Any]:
        """All parameters, the seed among them."""
        return dataclasses.asdict(self)

    def with_parameters(self, **changes: Any) -> Self:
        """The same generator with some parameters changed."""
        known = {field.name for field in dataclasses.fields(self)}
        unknown = sorted(changes.keys() - known)
        if unknown:
            raise MatchwoodError(
                f"workload {self.name!r}: expected parameters among {', '.join(sorted(known))}, "
                f"found {', '.join(unknown)}"
            )
        try:
            return dataclasses.replace(self, **changes)
        except (TypeError, ValueError) as error:  # a text where a number is compared, for one
            raise MatchwoodError(
                f"workload {self.name!r}: expected values of the types of its parameters, found "
                f"{changes} ({error})"
            ) from error

    def _expect(self, holds: bool, what: str) -> None:
        """For checks of parameters in `__post_init__`."""
        if not holds:
            raise MatchwoodError(f"workload {self.name!r}: expected {what}, found {self}")


@dataclass(frozen=True, kw_only=True)
class IntegerWorkload(Workload):
    """A workload over numbered attributes of integers.

    n_attributes  dimensions of the space
    """

    n_attributes: int = 1_000

    @property
    def names(self) -> list[str]:
        return [f"a{i}" for i in range(self.n_attributes)]

    def schema(self) -> Schema:
        return Schema(dict.fromkeys(self.names, "int"))


def points(name: str, *values: Any) -> tuple[Mapping[str, Any], ...]:
    """The points of a sweep over one parameter."""
    return tuple({name: value} for value in values)
