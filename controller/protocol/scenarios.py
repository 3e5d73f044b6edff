"""Which small pipelines are explored: two or three operators, one to three instances each, and who does
what."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from controller.protocol.agent import pipeline
from controller.protocol.messages import INPUT, Address
from controller.protocol.world import Act, Scenario


def duplicates(operator: int, name: str, children: int = 1) -> Act:
    return Act(Address(operator, name), "duplicate", children)


def deletes(operator: int, name: str) -> Act:
    return Act(Address(operator, name), "delete")


def vanishes(operator: int, name: str) -> Act:
    return Act(Address(operator, name), "vanish")


def _named(*scenarios: Scenario) -> dict[str, Scenario]:
    return {scenario.name: scenario for scenario in scenarios}


def gives_up(operator: int, name: str, peer_operator: int, peer: str) -> Act:
    return Act(Address(operator, name), "give_up", peer=Address(peer_operator, peer))


D, X, V, G = duplicates, deletes, vanishes, gives_up

# In names, "x" stands between what happens at neighbouring operators, "+" between what happens at one.
SMALL = _named(
    Scenario("one-operator", (2,), (D(0, "1"), X(0, "2"))),
    Scenario("duplicate", (1, 1), (D(0, "1"),)),
    Scenario("duplicate-by-two", (1, 1), (D(0, "1", 2),)),
    Scenario("delete", (2, 1), (X(0, "2"),)),
    Scenario("leave-twice", (2, 1), (X(0, "2"), X(0, "2"))),
    Scenario("everybody-leaves", (2, 2), (X(0, "1"), X(0, "2"), X(1, "1"), X(1, "2"))),
    Scenario("duplicate-x-duplicate", (1, 1), (D(0, "1"), D(1, "1"))),
    Scenario("duplicate-x-delete", (1, 2), (D(0, "1"), X(1, "2"))),
    Scenario("delete-x-duplicate", (2, 1), (X(0, "2"), D(1, "1"))),
    Scenario("delete-x-delete", (2, 2), (X(0, "2"), X(1, "2"))),
    Scenario("duplicate+duplicate", (2, 1), (D(0, "1"), D(0, "2"))),
    Scenario("duplicate+delete", (2, 1), (D(0, "1"), X(0, "2"))),
    Scenario("delete+delete", (3, 1), (X(0, "2"), X(0, "3"))),
    Scenario("duplicate-then-delete-x-duplicate", (2, 1), (D(0, "2"), X(0, "2"), D(1, "1"))),
    Scenario("duplicate-then-delete-x-delete", (2, 2), (D(0, "2"), X(0, "2"), X(1, "2"))),
    Scenario("delete-x-duplicate-then-delete", (2, 2), (X(0, "2"), D(1, "2"), X(1, "2"))),
    Scenario("duplicate-twice-x-duplicate", (1, 1), (D(0, "1"), D(0, "1"), D(1, "1"))),
    Scenario("delete-x-duplicate-and-child-deletes", (2, 1), (X(0, "2"), D(1, "1"), X(1, "1.1"))),
    Scenario("duplicate-and-child-deletes-x-delete", (1, 2), (D(0, "1"), X(0, "1.1"), X(1, "2"))),
    Scenario("children-delete", (1, 1), (D(0, "1"), X(0, "1.1"), D(1, "1"), X(1, "1.1"))),
    Scenario("child-duplicates-x-child-deletes", (1, 1), (D(0, "1"), D(0, "1.1"), D(1, "1"), X(1, "1.1"))),
    Scenario("three-operators-delete", (2, 2, 2), (X(0, "2"), X(1, "2"), X(2, "2"))),
    Scenario("three-operators-duplicate", (1, 1, 1), (D(0, "1"), D(1, "1"), D(2, "1"))),
    Scenario("duplicate-x-delete-x-duplicate", (1, 2, 1), (D(0, "1"), X(1, "2"), D(2, "1"))),
    Scenario("delete-x-duplicate-x-delete", (2, 1, 2), (X(0, "2"), D(1, "1"), X(2, "2"))),
)
LARGE = _named(
    Scenario("two-by-one-x-two-deletions", (1, 3), (D(0, "1", 2), X(1, "2"), X(1, "3"))),
    Scenario("two-deletions-x-two-deletions", (3, 3), (X(0, "2"), X(0, "3"), X(1, "2"), X(1, "3"))),
    Scenario("two-duplications-x-two-duplications", (2, 2), (D(0, "1"), D(0, "2"), D(1, "1"), D(1, "2"))),
    Scenario("two-duplications-x-two-deletions", (2, 3), (D(0, "1"), D(0, "2"), X(1, "2"), X(1, "3"))),
    Scenario("two-deletions-x-two-duplications", (3, 2), (X(0, "2"), X(0, "3"), D(1, "1"), D(1, "2"))),
    Scenario("three-operators-of-three-delete", (3, 3, 3), (X(0, "2"), X(1, "2"), X(2, "2"))),
    Scenario("three-operators-of-three-mixed", (3, 3, 3), (D(0, "1"), X(1, "2"), D(2, "1"))),
    Scenario("three-operators-of-two-all", (2, 2, 2), (D(0, "1"), X(0, "2"), D(1, "1"), X(1, "2"))),
)
# The paper's pipeline has five operators (§5.1): as far as the time allows.
FIVE = _named(
    Scenario("five-operators-one-duplicates", (1, 1, 1, 1, 1), (D(2, "1"),)),
    Scenario("five-operators-one-deletes", (2, 2, 2, 2, 2), (X(2, "2"),)),
    Scenario("five-operators-neighbours-delete", (1, 2, 2, 1, 1), (X(1, "2"), X(2, "2"))),
    Scenario("five-operators-neighbours-duplicate", (1, 1, 1, 1, 1), (D(1, "1"), D(2, "1"))),
    Scenario("five-operators-every-other-deletes", (2, 1, 2, 1, 2), (X(0, "2"), X(2, "2"), X(4, "2"))),
    Scenario("five-operators-three-mixed", (1, 1, 2, 1, 1), (D(1, "1"), X(2, "2"), D(3, "1"))),
    Scenario("five-operators-all-delete", (2, 2, 2, 2, 2), tuple(X(o, "2") for o in range(5))),
    Scenario(
        "five-operators-all-mixed", (1, 2, 1, 2, 1), (D(0, "1"), X(1, "2"), D(2, "1"), X(3, "2"), D(4, "1"))
    ),
    Scenario("five-operators-all-duplicate", (1, 1, 1, 1, 1), tuple(D(o, "1") for o in range(5))),
)
# Beyond the paper, without partial-order reduction. A peer that vanished times out by itself; G gives up a
# peer that lives, as in a partition, and reaches it again later.
FAILURES = _named(
    Scenario("vanish", (2, 2), (V(0, "2"),)),
    Scenario("duplicate-and-vanish", (2, 1), (D(0, "2"), V(0, "2"))),
    Scenario("delete-and-vanish", (2, 2), (X(0, "2"), V(0, "2"))),
    Scenario("duplicate-x-vanish", (1, 2), (D(0, "1"), V(1, "2"))),
    Scenario("vanish-x-duplicate", (2, 1), (V(0, "2"), D(1, "1"))),
    Scenario("delete-x-vanish", (2, 2), (X(0, "2"), V(1, "2"))),
    Scenario("duplicate-and-vanish-x-duplicate", (2, 1), (D(0, "2"), V(0, "2"), D(1, "1")), records=0),
    Scenario("duplicate-and-vanish-x-delete", (2, 2), (D(0, "2"), V(0, "2"), X(1, "2")), records=0),
    Scenario("child-vanishes", (1, 2), (D(0, "1"), V(0, "1.1"))),
    Scenario("partition", (1, 1), (G(0, "1", 1, "1"), G(1, "1", 0, "1"))),
    Scenario("partition-twice", (1, 1), (G(0, "1", 1, "1"), G(0, "1", 1, "1"))),
    Scenario("partition-of-one-side", (2, 1), (G(1, "1", 0, "2"),)),
    Scenario("partition-and-duplicate", (1, 1), (G(0, "1", 1, "1"), D(0, "1"))),
    Scenario("partition-x-duplicate", (1, 1), (G(0, "1", 1, "1"), D(1, "1"))),
    Scenario("duplicate-and-partition", (1, 1), (D(0, "1"), G(0, "1", 1, "1"))),
    Scenario(
        "duplicate-and-partition-from-two",
        (1, 2),
        (D(0, "1"), G(0, "1", 1, "1"), G(0, "1", 1, "2")),
        records=0,
    ),
    Scenario(
        "duplicate-and-partition-x-duplicate", (1, 1), (D(0, "1"), G(0, "1", 1, "1"), D(1, "1")), records=0
    ),
    Scenario("partition-x-delete", (1, 2), (G(0, "1", 1, "2"), X(1, "2"))),
    Scenario("partition-and-delete", (2, 1), (G(0, "2", 1, "1"), X(0, "2"))),
    Scenario("partition-and-vanish", (2, 2), (G(0, "1", 1, "2"), V(1, "2"))),
)
FIGURE_2 = replace(
    SMALL["duplicate-x-delete"],
    name="figure-2",
    fifo=False,
    shows="O0,1.1 sent a record to O1,2, which has terminated",
)
ALL = {**SMALL, **LARGE, **FIVE, **FAILURES, FIGURE_2.name: FIGURE_2}


def drawn(instances: tuple[int, ...], seed: int) -> Scenario:
    """A scenario of any size in which most instances do something, and some of their children, too."""
    draw = np.random.default_rng(seed)
    acts: list[Act] = []
    for address, state in pipeline(instances).items():
        if address == INPUT:
            continue
        kind = draw.choice(["none", "duplicate", "delete", "both"])
        if kind in ("duplicate", "both"):
            acts.append(Act(address, "duplicate", int(draw.integers(1, 3))))
            if draw.random() < 0.5:
                acts.append(Act(address.child(1), "delete" if draw.random() < 0.7 else "duplicate"))
        if kind in ("delete", "both") and not state.is_keeper:
            acts.append(Act(address, "delete"))
    return Scenario(f"drawn-{seed}", instances, tuple(acts), records=3)
