"""Asynchronous delivery over a topology: the same agents, any delays, views that agree in the end."""

from __future__ import annotations

import pytest

from controller.network import RttMatrix, RttUniform
from controller.protocol.delays import DelayedRun, views_agree
from controller.protocol.messages import Address, Duplicate
from fogscale.errors import FogscaleError

FAR = RttMatrix(("a", "b"), ((0.0, 300.0), (300.0, 0.0)))


def by_operator(address):
    return "a" if address.operator % 2 else "b"


def run_of(load_at, rtt=FAR, seed=0, **settings):
    return DelayedRun((3, 3, 3), rtt, by_operator, load_at, seed, **settings)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("jitter_ms", [0.0, 5.0, 5000.0])
def test_views_agree_after_any_delays(seed, jitter_ms):
    run = run_of(
        lambda operator, time_s: 4000.0 if int(time_s / 40 + operator) % 2 else 200.0,
        seed=seed,
        jitter_ms=jitter_ms,
    )
    run.run_until(200)
    assert run.sent["start"] > 3
    assert run.sent["deletion"] > 3
    run.settle()
    assert run.is_quiet
    assert views_agree(run.states, 3)
    assert run.sent["duplication"] == run.sent["duplication_ack"]
    assert run.sent["deletion"] == run.sent["deletion_ack"]


def test_a_duplication_takes_one_round_trip_and_a_half():
    run = DelayedRun((1, 1), RttUniform(100.0), str, lambda *_: 350.0, jitter_ms=0.0)
    parent = Address(1, "1")
    child = parent.child(1)
    run.states[child] = run.states[parent]._replace(address=child, status="idle", parent=parent)
    run.ticking = False
    run._do(parent, Duplicate((child,)))
    run.run_until(0.149)
    assert not run.states[child].is_active
    run.run_until(0.151)
    assert run.states[child].is_active


def test_the_same_seed_gives_the_same_run():
    runs = [run_of(lambda *_: 3000.0, seed=7) for _ in range(2)]
    for run in runs:
        run.run_until(60)
    assert runs[0].sent == runs[1].sent
    assert runs[0].states == runs[1].states


def test_lost_messages_are_sent_again_and_only_cost_time():
    def at(operator, time_s):
        return 4000.0 if int(time_s / 40 + operator) % 2 else 200.0

    sure, lossy = run_of(at), run_of(at, loss_ratio=0.5, resend_s=1.0)
    for run in (sure, lossy):
        run.run_until(200)
        run.settle()
        assert run.is_quiet
        assert views_agree(run.states, 3)
    with pytest.raises(FogscaleError, match="loss_ratio is 1"):
        run_of(at, loss_ratio=1.0)
