"""One schedule of a scenario of any size: drawn from a seed, or given. It goes through `world.perform`, not
through
the explorer's numbers, so that what the explorer finds is confirmed by another path."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from controller.protocol.messages import Message
from controller.protocol.world import Action, Scenario, beginning, enabled, perform, wrong_when_quiet


class Played(NamedTuple):
    actions: tuple[Action, ...]
    messages: int  # delivered, records apart
    problems: tuple[str, ...]


def played_at_random(scenario: Scenario, seed: int) -> Played:
    """Any enabled event is as likely as any other. The same seed gives the same schedule."""
    draw = np.random.default_rng(seed)
    world = beginning(scenario)
    actions: list[Action] = []
    while choices := enabled(world, scenario):
        action = choices[int(draw.integers(len(choices)))]
        actions.append(action)
        world, problems = perform(world, action, scenario)
        if problems:
            return _played(actions, problems)
    return _played(actions, wrong_when_quiet(world.states, scenario))


def replayed(scenario: Scenario, actions: Iterable[Action]) -> Played:
    """The given actions; what is wrong on the way, or at the end if nothing is left to happen there."""
    world = beginning(scenario)
    done: list[Action] = []
    for action in actions:
        done.append(action)
        world, problems = perform(world, action, scenario)
        if problems:
            return _played(done, problems)
    left = enabled(world, scenario)
    return _played(done, [] if left else wrong_when_quiet(world.states, scenario))


def _played(actions: list[Action], problems: list[str]) -> Played:
    messages = sum(isinstance(a.event, Message) and a.event.kind != "record" for a in actions)
    return Played(tuple(actions), messages, tuple(problems))
