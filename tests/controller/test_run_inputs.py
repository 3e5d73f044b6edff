"""What enters a job where: one load at its source, or one of its own for each operator."""

import numpy as np
import pytest

from controller.experiment import Run
from controller.run import prepare, simulate
from fogscale.errors import FogscaleError
from workloads.catalog import load

OPERATORS = ("parse", "filter", "route", "count", "rank")


def pipeline(**workload):
    """The decentralized paper's pipeline of five; selectivity 0 keeps each operator's load its own."""
    operators = [
        {"name": name, "upstream": list(OPERATORS[i - 1 : i]) if i else [], "n_max": 7, "selectivity": 0.0}
        for i, name in enumerate(OPERATORS)
    ]
    return Run.model_validate(
        {
            "experiment": "five",
            "policy": "static",
            "workload": {"name": "brownian", "parameters": {"operators": OPERATORS}} | workload,
            "seed": 1,
            "topology": {
                "nodes": [{"name": f"fog{i}"} for i in range(35)],
                "operators": operators,
                "rtt_ms": {"uniform_ms": 1},
            },
            "start": dict.fromkeys(OPERATORS, 7),
            "measured_operator": "route",
            "testbed": {
                "kind": "simulated",
                "capacity": {name: {"law": "linear", "per_replica_per_s": 500} for name in OPERATORS},
                "reconfiguration": {"style": "instant", "duration_s": 0},
                "metric_window_s": 20,
                "sample_interval_s": 10,
            },
        }
    )


def test_each_operator_gets_a_load_of_its_own():
    inputs = prepare(pipeline()).setup.inputs
    walks = load("brownian", operators=OPERATORS).inputs
    assert list(inputs) == list(OPERATORS)
    for operator, walk in walks.items():
        expected = walk.counts.sum()
        assert abs(inputs[operator].sum() - expected) < 5 * np.sqrt(expected)
        assert np.corrcoef(inputs[operator], walk.counts)[0, 1] > 0.95


def test_the_simulated_job_sees_each_load_at_its_operator():
    prepared = prepare(pipeline(scale=0.1))  # light enough that nothing waits
    with prepared.setup.testbed() as testbed:
        testbed.wait(100)
        seen = testbed.observe().operators
    for operator in OPERATORS:
        arrived_per_s = prepared.setup.inputs[operator][80:100].sum() / 20
        assert seen[operator].offered_rate_per_s == pytest.approx(arrived_per_s)
        assert seen[operator].throughput_per_s == pytest.approx(arrived_per_s)


def test_a_whole_run_leaves_nothing_behind():
    run = pipeline(scale=0.1)
    facts, samples = simulate(run.model_dump_json())
    total = sum(counts.sum() for counts in prepare(run).setup.inputs.values())
    assert facts["duration_s"] == 200
    assert samples[-1].offered_records == samples[-1].processed_records == total


def test_a_seed_gives_the_same_load_to_every_policy_and_other_seeds_others():
    once, again = prepare(pipeline()).setup.inputs, prepare(pipeline()).setup.inputs
    other = prepare(pipeline().model_copy(update={"seed": 2})).setup.inputs
    for operator in OPERATORS:
        np.testing.assert_array_equal(once[operator], again[operator])
        assert (once[operator] != other[operator]).any()


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        (
            {"parameters": {}},
            "workload 'brownian' drives op1, op2, op3, op4, op5, but there is no operator 'op1' (known:"
            " parse, filter, route, count, rank): rename them, or set workload.parameters.operators",
        ),
        (
            {"operator": "parse"},
            f"workload.operator: 'brownian' drives {', '.join(OPERATORS)} itself: remove it",
        ),
        (
            {"name": "taxi", "parameters": {}, "operator": "pars"},
            "unknown operator 'pars': did you mean parse?",
        ),
        ({"scale": 1e-9}, "workload 'brownian' offers no records: raise its scale or speed"),
    ],
)
def test_mistakes_are_one_clear_line(workload, message):
    with pytest.raises(FogscaleError) as error:
        prepare(pipeline(**workload))
    assert message in str(error.value)
    assert "\n" not in str(error.value)
