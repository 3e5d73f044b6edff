"""What is found by its name: parts of this project and other people's code, which may be broken."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import entry_points
from typing import Any, Generic, NamedTuple, TypeVar

from fogscale.errors import FogscaleError, Interrupted, unknown

LONGEST_REASON = 300  # characters
_Part = TypeVar("_Part")


class Candidate(NamedTuple):
    """What registers a part once it is loaded."""

    name: str
    place: str
    load: Callable[[], Any]


class Registry(Generic[_Part]):
    """All policies, or all testbeds: those of this project and those that packages publish in an entry point
    group. They are looked for when somebody first asks. One that cannot be loaded is listed as broken, and
    the others work.
    """

    def __init__(self, one: str, several: str, group: str, own: Callable[[], Iterable[Candidate]]) -> None:
        self.one, self.several, self.group, self.own = one, several, group, own
        self.registered: dict[str, _Part] = {}
        self.reasons: dict[str, str] = {}  # name -> why it cannot be used
        self.is_complete = False

    def add(self, name: str, part: _Part, module: str) -> None:
        taken = self._module_of(name)
        if taken not in (None, module):
            raise FogscaleError(
                f"two {self.several} are called '{name}' ({taken} and {module}): rename one of them"
            )
        self.registered[name] = part

    def _module_of(self, name: str) -> str | None:
        if name not in self.registered:
            return None
        part = self.registered[name]
        return (part if isinstance(part, type) else type(part)).__module__

    def names(self) -> tuple[str, ...]:
        self._look()
        return tuple(sorted(self.registered))

    def broken(self) -> dict[str, str]:
        """Those that cannot be used, with the reason."""
        self._look()
        return dict(sorted(self.reasons.items()))

    def get(self, name: str) -> _Part:
        self._look()
        if name not in self.registered:
            raise FogscaleError(self.why_not(name, self.registered))
        return self.registered[name]

    def why_not(self, name: str, known: Iterable[str]) -> str:
        """Why there is none of that name: it is broken, or nobody knows it."""
        if name in self.broken():
            return f"{self.one} '{name}' is broken: {self.reasons[name]}"
        return unknown(self.one, name, known)

    def _look(self) -> None:
        if self.is_complete:
            return
        self.is_complete = True  # before: what is loaded may ask for others
        for candidate in self._candidates():
            self.load(candidate)

    def load(self, candidate: Candidate) -> None:
        problem = why_broken(candidate.place, candidate.load)
        if problem is not None:
            self.reasons[candidate.name] = problem

    def _candidates(self) -> Iterator[Candidate]:
        yield from self.own()
        for entry in entry_points(group=self.group):
            yield Candidate(entry.name, entry.value, entry.load)


def why_broken(place: str, load: Callable[[], Any]) -> str | None:
    """Loads it. It can fail in any way; that is its own matter, and no reason to stop the others."""
    try:
        load()
    except (Interrupted, KeyboardInterrupt):
        raise
    except BaseException as error:
        return f"{place} cannot be imported ({in_short(error)}): fix or remove it"
    return None


def in_short(error: BaseException) -> str:
    """In one line, whatever it says."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:LONGEST_REASON]
