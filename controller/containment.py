"""What stands between fogscale and somebody's policy: it shows mappings that cannot be changed, checks every
answer before anything is done with it, and names the policy in whatever goes wrong inside it."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from numbers import Real
from typing import Any, TypeVar

from numpy.random import Generator

from controller.contract import Policy
from controller.model import (
    MOST_REPLICAS,
    Capabilities,
    Frozen,
    Instance,
    Instances,
    Note,
    Observation,
    Plan,
    Topology,
)
from fogscale.errors import FogscaleError, Interrupted

LONGEST_NAME, LONGEST_REASON = 1_000, 10_000  # characters
_T = TypeVar("_T")
_Problem = str | None


class PolicyError(FogscaleError):
    """What a policy did wrong: its run ends, those of others go on."""


@dataclass
class Contained:
    """A policy as the guards and the loop see it."""

    policy: Policy
    name: str

    @property
    def needs(self) -> Capabilities:
        return self._call("needs", lambda: self.policy.needs)

    @property
    def period_s(self) -> float:
        period_s = self._call("period_s", lambda: self.policy.period_s)
        if not _is_number(period_s) or not 0 < period_s < 1e9:
            raise self._wrong(
                f"has a period_s of {_short(period_s)}: give the seconds until its next decision"
            )
        return float(period_s)

    def start(self, topology: Topology, rng: Generator) -> None:
        self._call("start", lambda: self.policy.start(topology, rng))

    def decide(self, observation: Observation) -> Plan | None:
        shown = frozen(observation)
        plan = self._call(f"decide at {observation.time_s:g} s", lambda: self.policy.decide(shown))
        if plan is None:
            return None
        # Its classes may be its own, and fail when they are looked at.
        return self._call(
            f"its plan at {observation.time_s:g} s", lambda: self._checked(plan, observation.time_s)
        )

    def _checked(self, plan: Any, time_s: float) -> Plan:
        if (problem := _problem_of_plan(plan)) is not None:
            raise self._wrong(f"answered at {time_s:g} s with {problem}")
        return _plain_plan(plan)

    @property
    def estimates(self) -> Mapping[str, float]:
        """Of its last decision; what is not finite is left out, since JSON knows no such number."""
        return self._call("estimates", lambda: self._finite(getattr(self.policy, "estimates", {})))

    def _finite(self, given: Any) -> Mapping[str, float]:
        if not isinstance(given, Mapping):
            raise self._wrong(f"has estimates that are {_kind(given)}: give a mapping of names to numbers")
        for name, value in given.items():
            if not _is_text(name) or not _is_number(value):
                raise self._wrong(f"has the estimate {_short(name)} = {_kind(value)}: give a number")
        return {_word(name): float(value) for name, value in given.items() if _is_finite(value)}

    @property
    def notes(self) -> tuple[Note, ...]:
        return self._call("notes", lambda: self._noted(getattr(self.policy, "notes", ())))

    def _noted(self, notes: Any) -> tuple[Note, ...]:
        if (problem := _problem_of_notes(notes)) is not None:
            raise self._wrong(f"has {problem}")
        return tuple(map(_plain_note, notes))

    def _call(self, doing: str, asked: Callable[[], _T]) -> _T:
        return contained(self.name, doing, asked)

    def _wrong(self, message: str) -> PolicyError:
        return PolicyError(f"policy '{self.name}' {message}")


def contained(name: str, doing: str, asked: Callable[[], _T]) -> _T:
    """What the policy of that name answers; its errors become ours."""
    try:
        return asked()
    except (FogscaleError, Interrupted, KeyboardInterrupt):
        raise
    except BaseException as error:  # it is somebody else's: it can fail in any way
        raise PolicyError(f"policy '{name}' failed in {doing}: {in_words(error)}") from error


def in_words(error: BaseException) -> str:
    """Which error, and where in the policy's code."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    text = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}{': ' if text else ''}{text}{place}"


def frozen(observation: Observation) -> Observation:
    """The same values behind mappings that cannot be changed."""
    return replace(
        observation,
        placement=Frozen(observation.placement),
        requested=Frozen(observation.requested),
        operators=Frozen(observation.operators),
        nodes=Frozen(observation.nodes),
        requested_instances=Frozen(observation.requested_instances),
    )


# Copies in plain types: a policy that keeps its answer and changes it later changes nothing that was
# journalled, and JSON knows neither numpy's numbers nor classes derived from str.


def _plain_plan(plan: Plan) -> Plan:
    instances = plan.instances
    return Plan(
        placement=Frozen({_word(operator): _words(nodes) for operator, nodes in plan.placement.items()}),
        standby=plan.standby,
        reason=_word(plan.reason),
        instances=None if instances is None else _plain_instances(instances),
        notes=tuple(map(_plain_note, plan.notes)),
    )


def _plain_instances(instances: Instances) -> Instances:
    return Frozen(
        {
            _word(operator): tuple(Instance(_word(each.id), _word(each.node), each.active) for each in some)
            for operator, some in instances.items()
        }
    )


def _plain_note(note: Note) -> Note:
    data = {_word(name): _plain(value) for name, value in note.data.items()}
    return Note(_word(note.kind), _word(note.sender), _word(note.receiver), data)


def _plain(value: str | float) -> str | float:
    if isinstance(value, str):
        return _word(value)
    return value if type(value) in (int, float) else float(value)


def _words(nodes: tuple[str, ...]) -> tuple[str, ...]:
    return nodes if type(nodes) is tuple and {*map(type, nodes)} <= {str} else tuple(map(_word, nodes))


def _word(text: str) -> str:
    return text if type(text) is str else str.__str__(text)


# What an answer must be


def _problem_of_plan(plan: Any) -> _Problem:
    if not isinstance(plan, Plan):
        return f"{_kind(plan)}: give a Plan or None"
    if not _is_text(plan.reason, LONGEST_REASON):
        return f"a reason that is {_kind(plan.reason)}: give a text of at most {LONGEST_REASON} characters"
    if isinstance(plan.standby, bool) or not isinstance(plan.standby, int) or plan.standby < 0:
        return f"standby = {_short(plan.standby)}: give a number of instances"
    return (
        _problem_of_placement(plan.placement)
        or _problem_of_instances(plan.instances)
        or _problem_of_size(plan)
        or _problem_of_notes(plan.notes)
    )


def _problem_of_placement(placement: Any) -> _Problem:
    if not isinstance(placement, Mapping):
        return f"a placement that is {_kind(placement)}: give a mapping of operators to nodes"
    for operator, nodes in placement.items():
        if not _is_text(operator):
            return f"a placement of {_short(operator)}: name operators by texts"
        if not isinstance(nodes, tuple):
            return f"a placement of '{operator}' that is {_kind(nodes)}: give a tuple of nodes"
        for node in nodes:
            if not _is_text(node):
                return f"'{operator}' on {_short(node)}: name nodes by texts"
    return None


def _problem_of_instances(instances: Any) -> _Problem:
    if instances is None:
        return None
    if not isinstance(instances, Mapping):
        return f"instances that are {_kind(instances)}: give a mapping, or None"
    for operator, some in instances.items():
        if not _is_text(operator) or not isinstance(some, tuple):
            return f"instances of {_short(operator)} that are {_kind(some)}: give a tuple of Instance"
        for each in some:
            if not (
                isinstance(each, Instance)
                and _is_text(each.id)
                and _is_text(each.node)
                and isinstance(each.active, bool)
            ):
                return f"an instance of '{operator}' that is {_short(each)}: give an Instance"
    return None


def _problem_of_size(plan: Plan) -> _Problem:
    replicas = sum(map(len, plan.placement.values()))
    named = sum(map(len, plan.instances.values())) if plan.instances is not None else 0
    most = max(replicas, named, plan.standby)
    if most > MOST_REPLICAS:
        return f"a plan of {most} instances: at most {MOST_REPLICAS} are possible"
    return None


def _problem_of_notes(notes: Any) -> _Problem:
    if not isinstance(notes, tuple):
        return f"notes that are {_kind(notes)}: give a tuple of Note"
    for note in notes:
        if not isinstance(note, Note):
            return f"a note that is {_kind(note)}: give a Note"
        if not all(_is_text(text) for text in (note.kind, note.sender, note.receiver)):
            return "a note whose kind, sender or receiver is no text"
        if not isinstance(note.data, Mapping):
            return f"a note whose data are {_kind(note.data)}: give a mapping"
        for name, value in note.data.items():
            if not _is_text(name) or not (_is_text(value, LONGEST_REASON) or _is_finite(value)):
                return f"a note with {name!r} = {_short(value)}: give a text or a finite number"
    return None


def _is_text(value: Any, longest: int = LONGEST_NAME) -> bool:
    """One that UTF-8 can hold."""
    if not isinstance(value, str) or len(value) > longest:
        return False
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_finite(value: Any) -> bool:
    try:
        return _is_number(value) and isfinite(float(value))
    except OverflowError:  # of 10**400
        return False


def _short(value: Any) -> str:
    return repr(value)[:100]


def _kind(value: Any) -> str:
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
