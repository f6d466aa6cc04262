"""The list of functions: what each takes, what it gives and how it is computed for one event.

    name        as it is written, in lower case; `aliases` are other names that Spark has for it
    takes       the types of its arguments, `?` marks those that may be left out, `*` any number
    gives       its type; `number` where the arguments tell which, None where they tell all
    evaluate    from values to a value; NULL in gives NULL out unless `sees_null`
    group       the heading under which the documentation lists it
    total       types of arguments for which it cannot fail, and Spark gives the same (`total`)

`bind` chooses conversions and the result for given types of arguments, as Spark's analyser does; it
raises TypeProblem for types that the function does not take.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from matchwood.lang.functions.casts import caster
from matchwood.lang.functions.types import Arr, Mp, TypeProblem, is_number

Binding = tuple[Any, Callable[..., Any]]
"""The type of a result, and what computes it."""


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    takes: tuple[str, ...]
    bind: Callable[[Sequence[Any]], Binding]
    gives: str | None
    sees_null: bool
    group: str
    aliases: tuple[str, ...]
    total: tuple[str, ...] = ()

    @property
    def fewest(self) -> int:
        return len([each for each in self.takes if each[-1] not in "?*"])

    @property
    def most(self) -> int:
        return 1000 if any(each.endswith("*") for each in self.takes) else len(self.takes)


FUNCTIONS: dict[str, Function] = {}
ALIASES: dict[str, str] = {}


def define(
    name: str,
    takes: str,
    gives: str | None,
    evaluate: Callable[..., Any] | None = None,
    *,
    aliases: str = "",
    sees_null: bool = False,
    group: str = "",
    bind: Callable[[Sequence[Any]], Binding] | None = None,
    total: str = "",
) -> None:
    """Put a function on the list; `bind` where the types decide more than conversions.

    total  as in `Function`, several of them with commas between
    """
    wanted = tuple(takes.split())

    def converting(types: Sequence[Any]) -> Binding:
        assert evaluate is not None
        converters = [
            argument(each, kind)
            for each, kind in zip(spread(wanted, len(types)), types, strict=True)
        ]
        if not any(converters):
            return gives, evaluate

        def converted(*values: Any) -> Any:
            return evaluate(
                *[
                    value if convert is None or value is None else convert(value)
                    for convert, value in zip(converters, values, strict=True)
                ]
            )

        return gives, converted

    FUNCTIONS[name] = Function(
        name, wanted, bind or converting, gives, sees_null, group, tuple(aliases.split()),
        tuple(filter(None, total.split(", "))),
    )  # fmt: skip
    ALIASES.update(dict.fromkeys(aliases.split(), name))


def extend(
    name: str, takes_it: Callable[[Any], bool], bind: Callable[[Sequence[Any]], Binding]
) -> None:
    """Bind a function that is on the list in another way if an argument is of such a type."""
    function = FUNCTIONS[name]

    def either(types: Sequence[Any]) -> Binding:
        return bind(types) if any(map(takes_it, types)) else function.bind(types)

    FUNCTIONS[name] = replace(function, bind=either)


def spread(wanted: tuple[str, ...], n: int) -> list[str]:
    """What each of n arguments has to be."""
    plain = [each.rstrip("?*") for each in wanted]
    if wanted and wanted[-1].endswith("*"):
        plain += [plain[-1]] * max(0, n - len(plain))
    return plain[:n]


def argument(wanted: str, kind: Any) -> Callable[[Any], Any] | None:
    """What makes an argument of what is given; None: it is one already.  Else a TypeProblem."""
    if kind == "void" or wanted == "any":
        return None
    if wanted == "number":
        if is_number(kind):
            return None
    elif wanted == "int":
        if kind in ("int", "bigint"):
            return None
    elif wanted == "double":
        if is_number(kind):
            return None if kind == "double" else float
    elif wanted == "array":
        if isinstance(kind, Arr):
            return None
    elif wanted == "map":
        if isinstance(kind, Mp):
            return None
    elif wanted == kind:
        return None
    elif wanted in ("date", "timestamp") and kind in ("date", "timestamp", "string"):
        return caster(kind, wanted)
    raise TypeProblem(f"{kind}, where it takes {wanted}")


def find(name: str) -> Function | None:
    """The function of that name, in any case; aliases included."""
    name = name.lower()
    return FUNCTIONS.get(ALIASES.get(name, name))


def nearest(name: str) -> str | None:
    """The function whose name is nearest to one that is not on the list."""
    near = get_close_matches(name.lower(), [*FUNCTIONS, *ALIASES], 1, 0.7)
    return near[0] if near else None
