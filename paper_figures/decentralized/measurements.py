"""What the paper's simulator measures and no sample of a testbed has: messages, step by step.

The paper's own clock is `controller.protocol.steps`: its discrete steps, in which a decision's first
message is processed at once. All seeds of Figures 3 to 6 come from it. The first seeds also go through
the ordinary loop with the policy `decentralized`, on the same walks: there an instance sees the load of
the step before, and a node has to be created before it is announced.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from controller.contract import Step
from controller.experiment import Experiment, Run, runs_of, scenarios_of, varied
from controller.model import Observation
from controller.network import RttUniform
from controller.policies.decentralized import Reading, rules_of, variant_of
from controller.protocol.agent import IDLE, LEAVING, pipeline
from controller.protocol.chart import rows_of
from controller.protocol.decision import Rules
from controller.protocol.delays import DelayedRun, views_agree
from controller.protocol.explorer import shortest
from controller.protocol.faults import PRINTED, as_printed
from controller.protocol.messages import SCALING_KINDS, Address, Delete, Duplicate
from controller.protocol.scenarios import FIGURE_2
from controller.protocol.steps import Looks, StepRun, simulate
from controller.run import followed
from paper_figures.decisions import StepLog
from workloads import catalog

Floats = NDArray[np.float64]

LOOP_SEEDS = 10  # of the walk through the ordinary loop
ERRATA_SEEDS = 20
BEYOND_SEEDS = 10
POOL_SEEDS = 10
POOLS: tuple[int | None, ...] = (None, 60, 50, 40)  # nodes in all; None: one more whenever somebody asks
RULES = Rules()
RAMP_STEPS = 200.0
RAMPS: dict[tuple[str, float, Looks], int] = {  # shape, growth per step, who looks when -> how many seeds
    ("straight", 20.0, "apart"): 20,
    ("straight", 50.0, "apart"): 20,
    ("straight", 100.0, "apart"): 100,  # Figure 6
    ("straight", 200.0, "apart"): 20,
    ("by a share", 0.01, "apart"): 20,
    ("by a share", 0.015, "apart"): 20,
    ("straight", 100.0, "since_birth"): 20,
    ("straight", 50.0, "together"): 20,
    ("straight", 100.0, "together"): 20,
}
READINGS: tuple[tuple[Reading, ...], ...] = (
    (),
    ("floor_difference",),
    ("whole_probability",),
    ("more_than_one",),
    ("signed_deletion",),
    ("all_at_once",),
    ("by_view",),
    ("one_counter",),
    ("view_alone",),
    ("all_at_once", "by_view", "one_counter", "view_alone"),
)
BEYOND: dict[str, tuple[float, ...]] = {
    "delay_s": (0.0, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0),
    "loss_ratio": (0.0, 0.1, 0.3, 0.5, 0.7, 0.9),
    "change_per_s": (50.0, 100.0, 200.0, 400.0, 800.0),
}


def measured(experiment: Experiment, seeds: Sequence[int]) -> dict[str, pd.DataFrame]:
    walk = scenarios_of(experiment)["walk"]
    start = tuple(walk.start.values())
    place = [operator.name for operator in walk.topology.operators].index(walk.measured_operator)
    parameters = walk.workload.parameters
    return {
        "steps": pd.concat(
            [_stepped(start, place, parameters, seeds), _looped(walk, place, seeds[:LOOP_SEEDS])],
            ignore_index=True,
        ),
        "ramps": _ramps(start, place, seeds),
        "rounds": pd.DataFrame(_rounds()),
        "worked": pd.DataFrame([{"messages_30": _thirty(), "messages_168": _one_hundred_sixty_eight()}]),
        "charts": pd.DataFrame(_charts()),
        "errata": _errata(start, parameters, seeds[:ERRATA_SEEDS]),
        "pools": _pools(walk, seeds[:POOL_SEEDS]),
        "beyond": _beyond(start, parameters, seeds[:BEYOND_SEEDS]),
    }


def walk_of(parameters: Mapping[str, Any], seed: int) -> Floats:
    """Steps × operators."""
    workload = catalog.load("brownian", **{**parameters, "seed": seed})
    return np.array([profile.counts for profile in workload.inputs.values()]).T


# Figures 3 to 5


def _stepped(
    start: tuple[int, ...], place: int, parameters: Mapping[str, Any], seeds: Sequence[int]
) -> pd.DataFrame:
    frames = []
    for seed in seeds:
        found = simulate(start, walk_of(parameters, seed), seed, RULES)
        frame = _frame("steps", seed, place, found.loads, found.instances, found.messages)
        frames.append(frame.assign(op_messages=found.messages_of[:, place].astype(float)))
    return pd.concat(frames, ignore_index=True)


def _looped(walk: Experiment, place: int, seeds: Sequence[int]) -> pd.DataFrame:
    frames = []
    for run in runs_of(walk, ["decentralized"], seeds):
        steps, counts = _through_the_loop(run)
        messages = np.array([step.estimates["messages"] for step in steps])
        loads = walk_of(run.workload.parameters, run.seed)[: len(counts)]
        frames.append(_frame("loop", run.seed, place, loads, counts, messages).assign(op_messages=np.nan))
    return pd.concat(frames, ignore_index=True)


def _through_the_loop(run: Run) -> tuple[list[Step], NDArray[np.int64]]:
    """The turns of the policy, and the running instances of each operator (turns × operators)."""
    log = StepLog()
    followed(run, log)
    names = [operator.name for operator in run.topology.operators]
    return log.steps, np.array([_running(step.observation, names) for step in log.steps])


def _running(seen: Observation, names: Sequence[str]) -> list[int]:
    return [sum(each.state == "running" for each in seen.operators[name].instances) for name in names]


def _frame(
    way: str, seed: int, place: int, loads: Floats, nodes: NDArray[Any], messages: NDArray[Any]
) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "way": way,
            "seed": seed,
            "step": np.arange(1, len(loads) + 1),
            "load": loads.sum(axis=1),
            "nodes": nodes.sum(axis=1).astype(float),
            "messages": messages.astype(float),
            "op_load": loads[:, place],
            "op_nodes": nodes[:, place].astype(float),
            "processed": np.minimum(loads, nodes * RULES.capacity_per_step).sum(axis=1),
            "wrong_nodes": np.abs(nodes - ideal_nodes(loads)).sum(axis=1),
        }
    )


def ideal_nodes(loads: Floats) -> Floats:
    """load/(C·r) of each operator, and one at least."""
    return np.maximum(1.0, loads / (RULES.capacity_per_step * RULES.target_ratio))


# Elastic and bounded pools of nodes


def _pools(walk: Experiment, seeds: Sequence[int]) -> pd.DataFrame:
    rows = []
    for size in POOLS:
        for run in runs_of(_with_pool(walk, size), ["decentralized"], seeds):
            steps, counts = _through_the_loop(run)
            asked = [note.data for step in steps for note in step.notes if note.kind == "duplicates"]
            wanted = sum(float(data["wanted"]) for data in asked)
            loads = walk_of(run.workload.parameters, run.seed)[: len(counts)]
            rows.append(
                {
                    "pool": size or 0,
                    "seed": run.seed,
                    "most_nodes": int(counts.sum(axis=1).max()),
                    "wanted": wanted,
                    "refused": wanted - sum(float(data["nodes"]) for data in asked),
                    **_quality(loads, counts),
                }
            )
    return pd.DataFrame(rows)


def _with_pool(walk: Experiment, size: int | None) -> Experiment:
    if size is None:
        return walk
    nodes = [{"name": f"n{number}"} for number in range(1, size + 1)]
    return varied(walk, {"topology": {"nodes": nodes, "elastic": False}})


# Figure 6


def _ramps(start: tuple[int, ...], place: int, seeds: Sequence[int]) -> pd.DataFrame:
    frames = []
    first = RULES.target_ratio * RULES.capacity_per_step * start[0]
    time = np.arange(RAMP_STEPS)
    for (shape, growth, looks), most in RAMPS.items():
        load = first + growth * time if shape == "straight" else first * np.exp(growth * time)
        loads = np.tile(load[:, None], (1, len(start)))
        for seed in seeds[:most]:
            found = simulate(start, loads, seed, RULES, looks=looks)
            frames.append(
                pd.DataFrame(
                    {
                        "shape": shape,
                        "growth": growth,
                        "looks": looks,
                        "seed": seed,
                        "step": time.astype(int) + 1,
                        "nodes": found.instances.sum(axis=1),
                        "messages": found.messages,
                        "duplicates": found.announcements.any(axis=1),
                        "op_nodes": found.instances[:, place],
                        "op_messages": found.messages_of[:, place],
                        "op_duplicates": found.announcements[:, place] > 0,
                    }
                )
            )
    return pd.concat(frames, ignore_index=True)


# §5.4: one round with quiet neighbours


def _counted(run: StepRun, begun: list[tuple[Address, Any]]) -> int:
    run.advance(begun)
    messages = run.messages
    while not run.is_quiet:
        run.advance()
        messages += run.messages
    return messages


def _rounds() -> Iterator[dict[str, Any]]:
    """All rounds of a few sizes: k new instances by n, spread as evenly as can be; d of n that leave."""
    for preds, n, succs in product((1, 2, 5, 16), (1, 2, 3, 7), (1, 2, 4, 14)):
        for k in (1, 2, 3, 5, 8, 14):
            run = StepRun(pipeline((preds, n, succs)))
            begun: list[tuple[Address, Any]] = []
            for i in range(min(k, n)):
                parent = Address(1, str(i + 1))
                share = len(range(i, k, n))
                children = run._new_nodes(run.states[parent], share)
                begun.append((parent, Duplicate(children)))
            yield {
                "kind": "duplication", "n": n, "k": k, "succs": succs, "preds": preds,
                "counted": _counted(run, begun), "formula": 2 * min(k, n) * (succs + preds) + k,
            }  # fmt: skip
        for d in range(1, n):
            run = StepRun(pipeline((preds, n, succs)))
            leaving: list[tuple[Address, Any]] = [(Address(1, str(i + 2)), Delete()) for i in range(d)]
            yield {
                "kind": "deletion", "n": n, "k": d, "succs": succs, "preds": preds,
                "counted": _counted(run, leaving), "formula": 2 * d * (succs + preds),
            }  # fmt: skip


def _thirty() -> int:
    """§5.4, iteration 5: one duplication among 16 predecessors and 14 successors."""
    run = StepRun(pipeline((16, 7, 14)))
    parent = Address(1, "1")
    run.advance([(parent, Duplicate(run._new_nodes(run.states[parent], 1)))])
    return run.messages


def _one_hundred_sixty_eight() -> int:
    """§5.4, iteration 49: one deletion, and the acks of three that were decided one iteration before, among
    21 predecessors and 21 successors. All are told at once, as the paper has it."""
    run = StepRun(pipeline((21, 5, 21)), variant_of(("all_at_once",)))
    run.advance([(Address(1, str(i)), Delete()) for i in (2, 3, 4)])
    run.advance([(Address(1, "5"), Delete())])
    return run.messages


# Errata


def _errata(start: tuple[int, ...], parameters: Mapping[str, Any], seeds: Sequence[int]) -> pd.DataFrame:
    rows = []
    for readings, seed in product(READINGS, seeds):
        loads = walk_of(parameters, seed)
        found = simulate(start, loads, seed, rules_of(readings), variant_of(readings))
        waits = [s for s in found.left.values() if s.operations or s.status in (IDLE, LEAVING)]
        rows.append(
            {
                "reading": " + ".join(readings),
                "seed": seed,
                "stuck": len(waits),
                "views_agree": views_agree(found.left, len(start)),
                **_quality(loads, found.instances),
                "messages": float(found.messages.mean()),
            }
        )
    return pd.DataFrame(rows)


def _charts() -> Iterator[dict[str, Any]]:
    """The shortest run that shows what goes wrong without FIFO, and with each printed reading."""
    found = {"figure-2": shortest(FIGURE_2)}
    found |= {reading: shortest(as_printed(reading)) for reading in PRINTED}
    for name, run in found.items():
        assert run is not None, f"nothing is wrong with {name}"
        number = 0
        for number, row in enumerate(rows_of(run.scenario, run.actions), start=1):
            yield {
                "chart": name, "number": number, "agent": str(row.agent),
                "sender": str(row.sender or ""), "sent_at": row.sent_at or 0, "text": row.text,
            }  # fmt: skip
        for problem in run.problems:
            number += 1
            yield {
                "chart": name, "number": number, "agent": "", "sender": "", "sent_at": 0, "text": problem
            }  # fmt: skip


def _quality(loads: Floats, nodes: NDArray[Any]) -> dict[str, float]:
    ideal = ideal_nodes(loads)
    processed = np.minimum(loads, nodes * RULES.capacity_per_step)
    return {
        "accuracy": float(nodes.sum() / ideal.sum()),
        "wrong_ratio": float(np.abs(nodes - ideal).sum() / ideal.sum()),
        "throughput_ratio": float(processed.sum() / loads.sum()),
    }


# Beyond the paper: messages that take time or get lost, loads that change faster


def _beyond(start: tuple[int, ...], parameters: Mapping[str, Any], seeds: Sequence[int]) -> pd.DataFrame:
    rows = []
    for what, values in BEYOND.items():
        for value, seed in product(values, seeds):
            loads = walk_of({**parameters, **({what: value} if what == "change_per_s" else {})}, seed)
            network = {"loss_ratio": value, "delay_s": 0.1} if what == "loss_ratio" else {what: value}
            if what == "change_per_s":
                network = {"delay_s": 0.1}
            nodes, messages = _delayed(start, loads, seed, **network)
            rows.append(
                {"what": what, "value": value, "seed": seed, **_quality(loads, nodes), "messages": messages}
            )
    return pd.DataFrame(rows)


def _delayed(
    start: tuple[int, ...], loads: Floats, seed: int, delay_s: float = 0.0, loss_ratio: float = 0.0
) -> tuple[NDArray[Any], float]:
    """Instances after each second, and messages per second; a second is one of the paper's steps."""

    def load_at(operator: int, time_s: float) -> float:
        return float(loads[min(int(time_s), len(loads) - 1), operator])

    run = DelayedRun(
        start,
        RttUniform(2e3 * delay_s),
        str,
        load_at,
        seed,
        jitter_ms=0.0,
        loss_ratio=loss_ratio,
        rules=RULES,
    )
    rows = []
    for second in range(len(loads)):
        run.run_until(second + 1.0)
        active = [address.operator for address, state in run.states.items() if state.is_active]
        rows.append([active.count(operator) for operator in range(len(start))])
    return np.array(rows), sum(run.sent[kind] for kind in SCALING_KINDS) / len(loads)
