"""Owner: whoever owns arrays keeps, thaws and counts them in one way.

    class Lists(Owner):
        OWNED = {"places": "place_", "_ids": "id_"}     attribute: prefix of its names in a snapshot

An attribute is a NamedTuple of arrays, or another owner.  Growing is left to the owner (`arrays`):
what grows together is its own affair.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from matchwood.kernel.arrays import bytes_of, named, restored, writable


class Owner:
    """Owns the attributes that `OWNED` names."""

    OWNED: ClassVar[Mapping[str, str]] = {}
    REPLACED: ClassVar[tuple[str, ...]] = ()
    """Those of them that are made anew and never written to: they stay in the snapshot's file."""

    @property
    def nbytes(self) -> int:
        values = [getattr(self, name) for name in self.OWNED]
        return sum([v.nbytes if isinstance(v, Owner) else bytes_of(v) for v in values])

    def saved(self, prefix: str = "") -> dict[str, np.ndarray]:
        """The arrays by name, for a snapshot."""
        found: dict[str, np.ndarray] = {}
        for name, inner in self.OWNED.items():
            value = getattr(self, name)
            if isinstance(value, Owner):
                found |= value.saved(prefix + inner)
            else:
                found |= named(self._to_save(name, value), prefix + inner)
        return found

    def take(self, layout: Mapping[str, np.ndarray], prefix: str = "") -> None:
        """Use the arrays of a snapshot."""
        for name, inner in self.OWNED.items():
            value = getattr(self, name)
            if isinstance(value, Owner):
                value.take(layout, prefix + inner)
            else:
                setattr(
                    self, name, self._owned(name, restored(type(value), layout, prefix + inner))
                )

    def thaw(self) -> None:
        """Copy arrays that cannot be written, before the first change."""
        for name in self.OWNED:
            value = getattr(self, name)
            if isinstance(value, Owner):
                value.thaw()
            elif name not in self.REPLACED:
                setattr(self, name, writable(value))

    def _to_save(self, name: str, arrays: Any) -> Any:
        """What a snapshot gets of them: by default all; usually not the room to grow."""
        return arrays

    def _owned(self, name: str, arrays: Any) -> Any:
        """What is used of arrays that a snapshot has: by default all."""
        return arrays
