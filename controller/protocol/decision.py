"""When to duplicate, when to leave (Algorithms 2, 3, 4, 8 and 11): pure functions of the own load, n_t and
one draw."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor

from fogscale.errors import FogscaleError


@dataclass(frozen=True)
class Rules:
    """Parameters with the paper's values (§5.1); the flags at the end are what is printed, where it differs
    from
    what is meant."""

    capacity_per_step: float = 500.0  # C
    target_ratio: float = 0.7  # r
    up_ratio: float = 0.8  # of C; from here on an instance duplicates
    down_ratio: float = 0.6  # of C; from here down it leaves, unless it is the keeper
    floor_difference: bool = False  # Algorithm 2 rounds n_diff down; §4.1.1 does not
    whole_probability: bool = False  # Algorithm 4 draws against p, not against what its floor leaves
    more_than_one: bool = False  # Algorithm 4 tests n > 1, so one new instance alone is never made
    signed_deletion: bool = False  # Algorithm 8 draws against a negative number, so nobody ever leaves

    def __post_init__(self) -> None:
        if not self.capacity_per_step > 0:
            raise FogscaleError(f"capacity_per_step is {self.capacity_per_step}: give a number above 0")
        if not 0 < self.target_ratio <= 1:
            raise FogscaleError(f"target_ratio is {self.target_ratio}: give a ratio above 0 and at most 1")
        if not 0 <= self.down_ratio < self.up_ratio:
            raise FogscaleError(
                f"down_ratio is {self.down_ratio} and up_ratio {self.up_ratio}: instances would come and go"
                " at the same load; give a down_ratio below up_ratio"
            )


@dataclass(frozen=True)
class Decision:
    duplications: int = 0
    leave: bool = False


STAY = Decision()


def calls_for_action(load: float, is_keeper: bool, rules: Rules) -> bool:
    """Algorithm 11: whether the load is outside the thresholds. Only then is n_t worth asking for."""
    ratio = load / rules.capacity_per_step
    return ratio >= rules.up_ratio or (ratio <= rules.down_ratio and not is_keeper)


def replication_factor(load: float, count: int, rules: Rules) -> float:
    """Algorithm 2: what share of the `count` instances is missing (above 0) or spare (below 0)."""
    difference = load * count / (rules.target_ratio * rules.capacity_per_step) - count
    return (floor(difference) if rules.floor_difference else difference) / count


def decide(load: float, count: int, is_keeper: bool, draw: float, rules: Rules) -> Decision:
    """Algorithms 4, 8 and 11 up to the first message. `count` is n_t, the instances that share the
    operator's load."""
    if count < 1 or not calls_for_action(load, is_keeper, rules):
        return STAY
    factor = replication_factor(load, count, rules)
    if load / rules.capacity_per_step >= rules.up_ratio:
        return _duplications(max(0.0, factor), draw, rules)
    chance = factor if rules.signed_deletion else max(0.0, -factor)
    return Decision(leave=draw < chance)


def _duplications(factor: float, draw: float, rules: Rules) -> Decision:
    whole = floor(factor)
    duplications = whole + (draw < (factor if rules.whole_probability else factor - whole))
    return STAY if rules.more_than_one and duplications <= 1 else Decision(duplications)
