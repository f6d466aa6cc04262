"""Asked: what one search asks of a view, part by part.

A search of a view with a context part has two steps (`context_part`): `ahead`, with the lock of
contexts, searches that part; the rest is searched when the lock was given back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from matchwood.encode.event_batch import Slices
from matchwood.encode.events import EncodedEvents, encode_event, encode_events, slices_of
from matchwood.engine.answers.choices import ALL, Choice
from matchwood.engine.matches import Found, Id, Matches, joined_warnings
from matchwood.engine.segments.single import single_count, single_ids
from matchwood.engine.segments.view import View, view_of

if TYPE_CHECKING:
    from matchwood.engine.access import Reader
    from matchwood.engine.segments.pieces import Piece
    from matchwood.engine.segments.view import Part

Given = TypeVar("Given")
Encode = Callable[["Part"], EncodedEvents]


class Asked:
    """Events, and what is wanted of what holds for them.

    encode  gives the events, encoded for a part
    choose  gives the choice in a view; by default all
    alone   the one event that all matches are wanted of, as `single` takes it; else None
    """

    def __init__(
        self,
        encode: Encode,
        choose: Callable[[View], Choice] | None = None,
        alone: Any = None,
    ) -> None:
        self._encode = encode
        self._choose = choose
        self._alone = alone
        self._ahead: tuple[Choice, Piece] | None = None

    def ahead(self, view: View) -> None:
        """Search the context part, if it holds anything; with the lock of contexts."""
        self._ahead = None  # of a search that was begun again
        part = view.context_part
        if part is None or not len(part):
            return
        choice = self.choice(view)
        one_by_one = view.choice_of_parts(choice)
        piece = part.piece(self._encode(part), one_by_one)
        if one_by_one.now is not None:
            choice = replace(choice, now=one_by_one.now)
        self._ahead = choice, piece

    def choice(self, view: View) -> Choice:
        """Which of what holds is given."""
        if self._ahead is not None:
            return self._ahead[0]
        return ALL if self._choose is None else self._choose(view)

    def events(self, view: View) -> list[EncodedEvents | Piece]:
        """Events for each part that is searched, or what was found in it ahead."""
        return self.sources(view, self._encode)

    def sources(self, view: View, of_part: Callable[[Part], Given]) -> list[Given | Piece]:
        """Something for each part that is searched, or what was found in it ahead."""
        if self._ahead is None:
            return [of_part(part) for part in view.searched]
        found = self._ahead[1]
        return [found if part is view.context_part else of_part(part) for part in view.searched]

    def match(self, view: View, reader: Reader) -> Matches:
        """See `View.match`."""
        return view.match(self.events(view), reader, self.choice(view))

    def ids(self, view: View, reader: Reader) -> list[Id]:
        """The ids of what holds for one event; what is wrong with it is raised."""
        found: list[Id] | None = self._then(view, reader, single_ids)
        if found is not None:
            return found
        matches = self.match(view, reader)
        for error in matches.errors.values():
            raise error
        return matches.ids.tolist()

    def count(self, view: View, reader: Reader, most: int = 0) -> int:
        """How many hold for one event; if `most` are enough, at least so many of them."""
        found: int | None = self._then(view, reader, single_count, most)
        if found is not None:
            return found
        return view.count(self.events(view), reader, self.choice(view))

    def _then(self, view: View, reader: Reader, search: Callable[..., Any], *asked: Any) -> Any:
        """What `single_ids` or `single_count` says after the context part was searched ahead.

        None: it is for the general way.
        """
        if self._alone is None or self._ahead is None or self._ahead[1].found.errors:
            return None
        reader.scratch.begin()  # what an exception leaves busy is not used again
        view.n_asked += 1
        found = search(view, reader, self._alone, *asked, ahead=self._ahead[1])
        reader.n_events += 1
        reader.scratch.end()
        return found

    def find(self, view: View, reader: Reader) -> Found:
        """See `View.find`."""
        return view.find(self.events(view), reader, self.choice(view))


def one_event(event: Any) -> Encode:
    """One event; what is wrong with it is raised."""
    return lambda part: EncodedEvents(encode_event(part.store.attributes, event), {})


def many_events(events: Any) -> Encode:
    """Many events, with the error of each that is wrong."""
    return lambda part: encode_events(part.store.attributes, events)


def sliced_events(events: Any) -> Callable[[Part], Slices]:
    """The same, to be encoded slice by slice."""
    return lambda part: slices_of(part.store.attributes, events)


class Finding(Asked):
    """A search for events that were encoded before, in the view that they were encoded for.

    MatchwoodError if that has changed.
    """

    def __init__(self, events: EncodedEvents, choice: Choice) -> None:
        super().__init__(self._given, lambda view: choice)
        self._events = events
        self._view: View | None = None

    def _given(self, part: Part) -> EncodedEvents:
        assert self._view is not None
        each = (self._events, *self._events.others)
        return each[self._view.searched.index(part)]

    def ahead(self, view: View) -> None:
        self._view = view_of(self._events, view)
        super().ahead(self._view)

    def find(self, view: View, reader: Reader) -> Found:
        self._view = view_of(self._events, view)
        return super().find(self._view, reader)


class Encoding:
    """Encodes events for `find`; in two steps as `Asked`."""

    def __init__(self, events: Any) -> None:
        self._encode = many_events(events)
        self._ahead: EncodedEvents | None = None

    def ahead(self, view: View) -> None:
        """Encode for the context part, if it holds anything; with the lock of contexts."""
        part = view.context_part
        self._ahead = self._encode(part) if part is not None and len(part) else None

    def encoded(self, view: View) -> EncodedEvents:
        """For each part that is searched; what is wrong for one is wrong for all."""
        first, *others = [
            self._ahead
            if self._ahead is not None and part is view.context_part
            else self._encode(part)
            for part in view.searched
        ]
        for each in others:
            for event, error in each.errors.items():
                first.errors.setdefault(event, error)
        warnings = joined_warnings([first.warnings, *[each.warnings for each in others]])
        return first._replace(warnings=warnings, others=tuple(others), view=view)
