"""Settings of an index: a frozen dataclass, checked before anything is built."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

from matchwood.errors import IndexBuildError


@dataclass(frozen=True, kw_only=True)
class IndexConfig:
    """What can be set: nothing, unless an index has a Config of its own."""

    attribute_settings: ClassVar[tuple[str, ...]] = ()
    """Settings that name attributes: a matcher gives their ids to the index, which has no names."""

    @classmethod
    def checked(cls, index: str, settings: Mapping[str, Any]) -> Self:
        """The settings, or an error that names the index, what it knows and what it found."""
        known = [field.name for field in fields(cls)]
        unknown = sorted(settings.keys() - set(known))
        if unknown:
            expected = f"settings among {', '.join(known)}" if known else "no settings"
            raise IndexBuildError(f"{index}: expected {expected}, found {', '.join(unknown)}")
        try:
            return cls(**settings)
        except IndexBuildError as error:
            raise IndexBuildError(f"{index}: {error}") from None

    def _expect(self, name: str, holds: bool, what: str) -> None:
        """For __post_init__: a setting that is not what it must be."""
        if not holds:
            raise IndexBuildError(f"expected {what} for {name}, found {getattr(self, name)!r}")

    def _expect_integer(self, name: str, least: int, most: int | None = None) -> None:
        value = getattr(self, name)
        is_integer = isinstance(value, int) and not isinstance(value, bool)
        bounds = f"of {least} or more" if most is None else f"from {least} to {most}"
        is_inside = is_integer and least <= value <= (2**30 if most is None else most)
        self._expect(name, is_inside, f"an integer {bounds}")

    def _expect_number(self, name: str, least: float, most: float) -> None:
        value = getattr(self, name)
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        bounds = f" from {least} to {most}" if math.isfinite(most - least) else ""
        self._expect(name, is_number and least <= value <= most, f"a number{bounds}")

    def _expect_one(self, name: str, *known: Any) -> None:
        """A setting that is one of these; their names, if there are two."""
        two = " or ".join([repr(each) for each in known])
        what = two if len(known) == 2 else f"one of {', '.join(map(str, known))}"
        self._expect(name, getattr(self, name) in known, what)

    def _expect_flag(self, name: str) -> None:
        self._expect(name, isinstance(getattr(self, name), bool), "True or False")
