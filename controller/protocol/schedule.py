"""One schedule of a scenario of any size: drawn from a seed, or given. It goes through `world.perform`, not
through the explorer's numbers, so that what the explorer finds is confirmed by another path."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, islice
from typing import NamedTuple

import numpy as np

from controller.protocol.messages import Address, Duplicate, Message
from controller.protocol.world import (
    Action,
    Scenario,
    World,
    beginning,
    enabled,
    own_actions,
    perform,
    wrong_when_quiet,
)


class Played(NamedTuple):
    actions: tuple[Action, ...]
    messages: int  # delivered, records apart
    problems: tuple[str, ...]


class _Choices:
    """What can happen next, kept up to date from event to event."""

    def __init__(self, world: World, scenario: Scenario) -> None:
        self.scenario = scenario
        self.own: dict[Address, list[Action]] = {}
        self.look_again(world, world.states)

    def look_again(self, world: World, agents: Iterable[Address]) -> None:
        """At what these agents can do by themselves."""
        self.world = world
        for agent in agents:
            self.own[agent] = own_actions(world, agent, self.scenario)
            if not self.own[agent]:
                del self.own[agent]

    def changed_by(self, action: Action, world: World) -> None:
        """Only who acted, and the nodes it created, can do something else now; with failures, anybody."""
        created = action.event.children if isinstance(action.event, Duplicate) else ()
        self.look_again(world, world.states if self.scenario.has_failures else (action.agent, *created))

    def drawn(self, draw: np.random.Generator) -> Action | None:
        """Any event is as likely as any other."""
        channels = self.world.channels
        if not self.scenario.fifo:
            choices = enabled(self.world, self.scenario)
            return choices[int(draw.integers(len(choices)))] if choices else None
        count = len(channels) + sum(map(len, self.own.values()))
        if count == 0:
            return None
        chosen = int(draw.integers(count))
        if chosen < len(channels):
            message = next(islice(channels.values(), chosen, None))[0]
            return Action(message.receiver, message)
        return next(islice(chain.from_iterable(self.own.values()), chosen - len(channels), None))


def played_at_random(scenario: Scenario, seed: int) -> Played:
    """The same seed gives the same schedule."""
    draw = np.random.default_rng(seed)
    world = beginning(scenario)
    choices = _Choices(world, scenario)
    actions: list[Action] = []
    while (action := choices.drawn(draw)) is not None:
        actions.append(action)
        world, problems = perform(world, action, scenario)
        if problems:
            return _played(actions, problems)
        choices.changed_by(action, world)
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
