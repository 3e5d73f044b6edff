"""The order and the time of frames; that real frames cross is tested on the testbed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fog.network import switch
from fog.network.switch import DelayLine, checked, remembered

MS = 1_000_000


def drain(line: DelayLine) -> list[tuple[float, int, bytes]]:
    released = []
    while line.next_due_ns is not None:
        due_ns, target, frame = line.release()
        released.append((due_ns / MS, target, frame))
    return released


def test_a_frame_waits_for_half_of_the_round_trip() -> None:
    line = DelayLine([[0, 50], [50, 0]])
    line.hold(b"there", 0, 1, now_ns=0)
    line.hold(b"back", 1, 0, now_ns=25 * MS)
    assert drain(line) == [(25, 1, b"there"), (50, 0, b"back")]


def test_near_frames_overtake_far_ones_of_other_pairs() -> None:
    line = DelayLine([[0, 100, 10], [100, 0, 0], [10, 0, 0]])
    line.hold(b"far", 0, 1, now_ns=0)
    line.hold(b"near", 0, 2, now_ns=MS)
    assert [frame for _, _, frame in drain(line)] == [b"near", b"far"]


def test_frames_of_a_pair_keep_their_order_when_its_delay_shrinks() -> None:
    line = DelayLine([[0, 100], [100, 0]])
    line.hold(b"first", 0, 1, now_ns=0)
    line.set([[0, 2], [2, 0]])
    line.hold(b"second", 0, 1, now_ns=MS)
    assert drain(line) == [(50, 1, b"first"), (50, 1, b"second")]


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.floats(0, 5), st.floats(0, 300)), max_size=60)
)
def test_whatever_changes_no_frame_is_early_lost_or_overtaken(
    steps: list[tuple[int, int, float, float]],
) -> None:
    line = DelayLine([[0.0] * 3] * 3)
    now_ns, sent = 0, []
    for number, (source, target, wait_ms, rtt_ms) in enumerate(steps):
        now_ns += int(wait_ms * MS)
        line.set([[rtt_ms] * 3] * 3)
        line.hold(b"%d" % number, source, target, now_ns)
        sent.append((source, target, now_ns + int(rtt_ms / 2 * MS)))
    released = drain(line)
    assert sorted(int(frame) for _, _, frame in released) == list(range(len(steps)))
    assert [due_ms for due_ms, _, _ in released] == sorted(due_ms for due_ms, _, _ in released)
    for due_ms, _, frame in released:
        assert due_ms * MS >= sent[int(frame)][2] - 1
    for pair in {(source, target) for source, target, _ in sent}:
        order = [int(frame) for _, _, frame in released if sent[int(frame)][:2] == pair]
        assert order == sorted(order)
    assert line.held_bytes == 0


def test_a_full_switch_loses_frames_instead_of_the_machines_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switch, "MOST_HELD_BYTES", 10)
    line = DelayLine([[0, 1], [1, 0]])
    assert line.hold(b"12345678", 0, 1, 0)
    assert not line.hold(b"123", 0, 1, 0)
    line.release()
    assert line.hold(b"123", 0, 1, 0)


def test_a_matrix_of_the_wrong_size_is_not_taken() -> None:
    with pytest.raises(ValueError, match="2 ports need 2 rows"):
        checked([[0, 1, 2]] * 3, 2)


def test_a_restarted_switch_remembers_the_pairs_that_still_exist(tmp_path: Path) -> None:
    file = tmp_path / "rtt_ms.json"
    assert remembered(file, ["a", "b"]) == [[0, 0], [0, 0]]
    file.write_text(json.dumps({"a": {"a": 0, "b": 20}, "b": {"a": 20, "b": 0}}))
    assert remembered(file, ["b", "c", "a"]) == [[0, 0, 20], [0, 0, 0], [20, 0, 0]]
    file.write_text("{half")
    assert remembered(file, ["a"]) == [[0]]
