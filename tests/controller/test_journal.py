"""The journal: every field comes back as it went in, and no crash or scratch goes unnoticed."""

import os
import resource
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller import journal as journals
from controller.contract import Step
from controller.journal import Journal, SampleLog, read, topology_of, topology_record
from controller.model import (
    Instance,
    InstanceMetrics,
    NodeMetrics,
    Note,
    Observation,
    OperatorMetrics,
    Plan,
    Receipt,
    Sample,
)
from controller.network import RttCoordinates, RttDelays, RttMatrix, RttScaled, RttUniform
from fogscale.errors import FogscaleError
from tests.support.jobs import DELAYS_MS, chain, placed, seen
from tests.support.journals import older, unchained

RUN = {"policy": "static", "seed": 3, "settings": {"simulation": {"step_s": 0.1}, "pins": ("a", "b")}}
THIRD = 1 / 3  # no short decimal: only an exact round trip brings it back


def step_at(time_s: float, **more) -> Step:
    return Step(seen(["fog1"], time_s=time_s, **more), None, 60.0, ())


def written(path: Path, *steps: Step, end: bool = True) -> Path:
    journal = Journal.open(path, RUN, chain())
    for step in steps:
        journal.append(step)
    if end:
        journal.end(True, (), {})
    journal.close()
    return path


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "run" / "journal.jsonl"


# Round trips

floats = st.floats(allow_nan=False, allow_infinity=False)
maybe = st.none() | floats
counts = st.integers(0, 2**53)
names = st.text(min_size=1, max_size=8)
placements = st.dictionaries(names, st.lists(names, max_size=3).map(tuple), max_size=3)
instances = st.builds(
    InstanceMetrics,
    id=names,
    node=names,
    state=st.sampled_from(["requested", "booting", "running", "inactive", "stopping"]),
    cpu_ratio=maybe,
    memory_ratio=maybe,
    busy_ratio=maybe,
    rate_per_s=maybe,
)
metrics = st.builds(
    OperatorMetrics,
    offered_rate_per_s=maybe,
    throughput_per_s=maybe,
    true_rate_per_s=maybe,
    back_pressure_ratio=maybe,
    busy_ratio=maybe,
    cpu_ratio=maybe,
    memory_ratio=maybe,
    queue_records=maybe,
    response_time_ms=maybe,
    instances=st.lists(instances, max_size=2).map(tuple),
)
named = st.builds(Instance, id=names, node=names, active=st.booleans())
named_instances = st.dictionaries(names, st.lists(named, max_size=3).map(tuple), max_size=3)
notes = st.lists(
    st.builds(
        Note,
        kind=names,
        sender=names,
        receiver=names,
        data=st.dictionaries(names, names | floats, max_size=2),
    ),
    max_size=2,
).map(tuple)
plans = st.builds(
    Plan,
    placement=placements,
    standby=st.integers(0, 9),
    reason=st.text(max_size=20),
    instances=st.none() | named_instances,
    notes=notes,
)
receipts = st.builds(
    Receipt,
    plan=plans,
    outcome=st.sampled_from(["done", "failed", "refused", "unchanged"]),
    requested_s=floats,
    finished_s=floats,
    downtime_s=floats,
    message=st.text(max_size=20),
)
samples = st.builds(
    Sample,
    time_s=floats,
    offered_records=counts,
    processed_records=counts,
    lag_records=counts,
    replicas=st.dictionaries(names, counts, max_size=3),
    reconfigurations=counts,
    response_p50_ms=maybe,
    response_p95_ms=maybe,
    response_p99_ms=maybe,
    response_mean_ms=maybe,
    late_records=st.dictionaries(names, counts, max_size=2),
    time_in_job_s=st.dictionaries(names, floats, max_size=2),
    standby=counts,
    allocated=counts,
)
observations = st.builds(
    Observation,
    time_s=floats,
    topology=st.just(chain()),
    placement=placements,
    requested=placements,
    operators=st.dictionaries(names, metrics, max_size=3),
    nodes=st.dictionaries(names, st.builds(NodeMetrics, cpu_ratio=maybe, memory_ratio=maybe), max_size=3),
    measured_s=maybe,
    lag_records=maybe,
    response_time_ms=maybe,
    receipts=st.lists(receipts, max_size=2).map(tuple),
    standby=st.lists(names, max_size=2).map(tuple),
    requested_instances=named_instances,
)
steps = st.builds(
    Step,
    observation=observations,
    plan=st.none() | plans,
    waited_s=floats,
    samples=st.lists(samples, max_size=3).map(tuple),
    estimates=st.dictionaries(names, floats, max_size=2),
    notes=notes,
)


@settings(max_examples=80, deadline=None)
@given(recorded=st.lists(steps, max_size=3), final=st.lists(samples, max_size=2), finished=st.booleans())
def test_every_field_comes_back_exactly(tmp_path_factory, recorded, final, finished):
    path = tmp_path_factory.mktemp("journal") / "journal.jsonl"
    journal = Journal.open(path, RUN, chain())
    for step in recorded:
        journal.append(step)
    journal.end(finished, final, {})
    journal.close()
    back = read(path)
    assert back.steps == tuple(recorded)
    assert back.final_samples == tuple(final)
    assert (back.ended, back.finished) == (True, finished)
    assert back.topology == chain()


def test_floats_come_back_to_the_last_bit(path):
    step = step_at(
        THIRD, map=OperatorMetrics(cpu_ratio=0.1 + 0.2, offered_rate_per_s=1e-308, queue_records=-0.0)
    )
    back = read(written(path, step)).steps[0].observation
    assert back.time_s == THIRD
    assert back.operators["map"].cpu_ratio == 0.30000000000000004
    assert back.operators["map"].offered_rate_per_s == 1e-308


def test_what_an_older_journal_calls_otherwise_is_still_read(path):
    written(path, step_at(60.0, map=OperatorMetrics(offered_rate_per_s=12.5)))
    path.write_bytes(older(path.read_bytes()).replace(b"offered_rate_per_s", b"input_rate_per_s"))
    assert read(path).steps[0].observation.operators["map"].offered_rate_per_s == 12.5


def test_a_whole_number_of_seconds_stays_a_float(path):
    assert isinstance(read(written(path, step_at(60.0))).steps[0].observation.time_s, float)


@pytest.mark.parametrize(
    "rtt_ms",
    [
        RttMatrix(("a", "b"), ((0.0, THIRD), (THIRD, 0.0))),
        RttCoordinates({"a": (0.0, THIRD), "b": (1.0, 2.0)}),
        RttDelays({"a": 0.0, "b": THIRD}),
        RttUniform(THIRD),
        RttScaled(RttScaled(RttDelays({"a": 1.0, "b": 2.0}), 3.0), THIRD),
    ],
    ids=lambda rtt: type(rtt).__name__,
)
def test_every_kind_of_network_comes_back(path, rtt_ms):
    topology = replace(chain(n_max=None, elastic=True), rtt_ms=rtt_ms)
    Journal.open(path, RUN, topology).close()
    back = read(path).topology
    assert back == topology
    assert back.rtt_ms("a", "b") == rtt_ms("a", "b")


def test_a_network_that_is_just_a_function_cannot_be_journalled():
    with pytest.raises(TypeError, match=r"use a class of controller\.network"):
        topology_record(replace(chain(), rtt_ms=lambda _a, _b: 0.0))


def test_a_topology_record_is_plain_data():
    record = msgspec.json.decode(msgspec.json.encode(topology_record(chain())))
    assert topology_of(record) == chain()


def test_samples_are_read_in_order_with_those_after_the_last_step(path):
    taken = [Sample(float(t), t, t, 0, {"map": 1}, 0) for t in range(4)]
    journal = Journal.open(path, RUN, chain())
    journal.append(step_at(0.0)._replace(samples=()))
    journal.append(step_at(1.0)._replace(samples=tuple(taken[:1])))
    journal.append(step_at(2.0)._replace(samples=tuple(taken[1:3])))
    journal.end(False, iter(taken[3:]), {})
    journal.close()
    assert list(read(path).samples) == taken


# The topology is written once and again when it changes

SLOW = replace(chain(), rtt_ms=RttScaled(RttDelays(DELAYS_MS), 4.0))
CHANGES = (
    step_at(0.0),
    step_at(60.0),
    step_at(120.0, topology=SLOW),
    step_at(180.0, topology=SLOW),
    step_at(240.0),
)


def kinds(path: Path) -> list[str]:
    return [line.split(b'"')[3].decode() for line in path.read_bytes().splitlines()]


def test_a_topology_that_stays_is_written_once(path):
    assert kinds(written(path, *CHANGES[:2])) == ["start", "step", "step", "end"]


def test_a_topology_that_changes_is_written_again(path):
    assert kinds(written(path, *CHANGES)) == [
        "start",
        "step",
        "step",
        "topology",
        "step",
        "step",
        "topology",
        "step",
        "end",
    ]
    assert [step.observation.topology for step in read(path).steps] == [
        step.observation.topology for step in CHANGES
    ]


@pytest.mark.parametrize("whole_lines", range(1, 9))
def test_a_journal_continued_after_any_line_ends_up_the_same(path, whole_lines):
    lines = written(path, *CHANGES).read_bytes().splitlines(keepends=True)
    whole = b"".join(lines)
    path.write_bytes(b"".join(lines[:whole_lines]))
    journal = Journal.open(path, RUN, chain())
    for step in CHANGES[len(journal.recorded.steps) :]:
        journal.append(step)
    journal.end(True, (), {})
    journal.close()
    assert path.read_bytes() == whole


# Crashes


def test_nothing_written_is_no_journal(path):
    assert read(path) is None
    path.parent.mkdir()
    path.write_bytes(b"")
    assert read(path) is None


@pytest.mark.parametrize("torn_bytes", [1, 10, 100])
def test_a_torn_tail_is_cut_off_and_the_journal_goes_on(path, torn_bytes):
    whole = written(path, *CHANGES[:2], end=False).read_bytes()
    path.write_bytes(whole[:-torn_bytes])
    journal = Journal.open(path, RUN, chain())
    assert len(journal.recorded.steps) == 1
    journal.append(CHANGES[1])
    journal.close()
    assert path.read_bytes() == whole


def test_every_torn_tail_is_read_back_to_the_last_whole_line(path):
    whole = written(path, *CHANGES[:2]).read_bytes()
    *kept, step, _ = whole.splitlines(keepends=True)
    ends = [len(b"".join(kept)), len(b"".join(kept)) + len(step), len(whole)]
    for cut in range(ends[0], ends[2] + 1):
        torn = path.with_name(f"cut-{cut}")  # a new file each time is much faster than one overwritten
        torn.write_bytes(whole[:cut])
        recorded = read(torn)
        assert recorded.complete_bytes == max(end for end in ends if end <= cut)
        assert len(recorded.steps) == (1 if cut < ends[1] else 2)
        assert recorded.ended == (cut == ends[2])


def test_a_torn_first_line_is_written_again(path):
    whole = written(path, end=False).read_bytes()
    path.write_bytes(whole[:-1])
    written(path, end=False)
    assert path.read_bytes() == whole


def test_reading_does_not_alter_a_torn_journal(path):
    """Analysis reads journals of runs that are still being written."""
    whole = written(path, *CHANGES[:2], end=False).read_bytes()
    path.write_bytes(whole[:-5])
    assert len(read(path).steps) == 1
    assert path.read_bytes() == whole[:-5]


def test_a_journal_without_an_end_has_not_ended(path):
    recorded = read(written(path, step_at(0.0), end=False))
    assert not recorded.ended
    assert not recorded.finished


def test_every_line_is_on_disk_before_the_next_turn(path):
    journal = Journal.open(path, RUN, chain())
    for count, step in enumerate(CHANGES[:2], start=1):
        journal.append(step)
        assert len(read(path).steps) == count
    journal.close()


# Scratches


@pytest.mark.parametrize(
    ("number", "line"),
    [
        pytest.param(2, b"garbage", id="not JSON"),
        pytest.param(2, b"", id="an empty line"),
        pytest.param(3, b"[1, 2]", id="no record"),
        pytest.param(3, b'{"time_s": 1}', id="no kind"),
        pytest.param(3, b'{"kind":"step","time_s":"late"}', id="a step of the wrong shape"),
        pytest.param(2, b'{"kind":"topology"}', id="a topology without one"),
        pytest.param(3, b'{"kind":"end"}', id="an end without anything"),
        pytest.param(3, b'{"kind":"steps"}', id="an unknown kind"),
        pytest.param(2, b'{"kind":"\xff\xfe"}', id="no text"),
        pytest.param(2, b'{"kind":"step"' + b"\x00" * 100, id="zeros after a power failure"),
    ],
)
def test_a_corrupt_line_is_named(path, number, line):
    lines = written(path, *CHANGES[:2]).read_bytes().splitlines()
    lines[number - 1] = line
    path.write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(FogscaleError) as error:
        read(path)
    assert f"{path}, line {number}:" in str(error.value)
    assert f"head -n {number - 1}" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("worked_on", "number"),
    [
        pytest.param(lambda lines: [*lines[:3], *lines[4:]], 4, id="a line taken out"),
        pytest.param(lambda lines: [*lines[:4], lines[3], *lines[4:]], 5, id="a line repeated"),
        pytest.param(lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]], 3, id="two lines swapped"),
        pytest.param(lambda lines: [*lines[:3], lines[-1]], 4, id="half of it, with the end"),
        pytest.param(lambda lines: [*lines, lines[-1]], 8, id="an end that stands twice"),
        pytest.param(
            lambda lines: [*lines[:-1], lines[-1].replace(b'"finished":true', b'"finished":false')],
            7,
            id="a value changed",
        ),
        pytest.param(lambda lines: [*lines[:3], *unchained(lines[3]), *lines[4:]], 4, id="no checksum"),
        pytest.param(lambda lines: [lines[0].replace(b"static", b"statik"), *lines[1:]], 1, id="the start"),
    ],
)
def test_a_finished_journal_that_somebody_worked_on_is_refused_by_line(path, worked_on, number):
    lines = worked_on(written(path, *CHANGES[:4]).read_bytes().splitlines())
    path.write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(FogscaleError, match=f"journal.jsonl, line {number}: "):
        read(path)


def test_an_older_journal_is_read_and_goes_on_as_it_is(path):
    path.parent.mkdir()
    path.write_bytes(older(written(path.with_name("new"), *CHANGES[:2], end=False).read_bytes()))
    assert read(path).chain is None
    written(path, CHANGES[2])
    assert (len(read(path).steps), read(path).ended, b'"chain"' in path.read_bytes()) == (3, True, False)


def test_no_flipped_byte_leads_to_anything_but_one_line(path):
    """The record reads (as another value) or is named; it never ends in a traceback."""
    whole = bytearray(written(path, *CHANGES[:1]).read_bytes())
    for position in range(0, len(whole) - 1, 3):
        scratched = bytes([*whole[:position], whole[position] ^ 0x04, *whole[position + 1 :]])
        scratch = path.with_name(f"flip-{position}")
        scratch.write_bytes(scratched)
        with suppress(FogscaleError):
            read(scratch)


def test_following_the_advice_brings_the_journal_back(path):
    lines = written(path, *CHANGES).read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:5], b"garbage\n", *lines[6:]]))
    with pytest.raises(FogscaleError, match=r"head -n 5"):
        read(path)
    path.write_bytes(b"".join(lines[:5]))
    assert len(read(path).steps) == 3


def test_a_file_that_is_no_journal_is_left_alone(path):
    path.parent.mkdir()
    path.write_text('{"kind":"step"}\n', encoding="utf-8")
    with pytest.raises(FogscaleError, match="line 1: not the start of a journal"):
        Journal.open(path, RUN, chain())
    assert path.read_text(encoding="utf-8") == '{"kind":"step"}\n'


def test_a_journal_of_another_format_is_refused(path):
    whole = written(path).read_bytes()
    path.write_bytes(whole.replace(b'"version":2', b'"version":3'))
    with pytest.raises(FogscaleError, match="written in format 3, this fogscale reads 2"):
        read(path)


# Other runs, other folders


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"seed": 4}, "seed"),
        ({"settings": {"simulation": {"step_s": 0.2}, "pins": ("a", "b")}}, "settings"),
        ({"new": 1}, "new"),
    ],
)
def test_a_run_with_other_settings_is_refused_and_the_journal_kept(path, change, name):
    whole = written(path, *CHANGES[:2], end=False).read_bytes()
    with pytest.raises(FogscaleError, match=rf"holds a run with another '{name}': use --fresh"):
        Journal.open(path, RUN | change, chain())
    assert path.read_bytes() == whole


def test_the_same_settings_are_recognised_although_json_knows_no_tuples(path):
    written(path, *CHANGES[:2], end=False)
    journal = Journal.open(path, RUN, chain())
    journal.close()
    assert len(journal.recorded.steps) == 2


def test_a_folder_that_cannot_be_written_is_explained(tmp_path):
    (tmp_path / "file").write_text("not a folder", encoding="utf-8")
    with pytest.raises(FogscaleError) as error:
        Journal.open(tmp_path / "file" / "journal.jsonl", RUN, chain())
    assert "cannot write" in str(error.value)
    assert "--out" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_folder_in_the_place_of_a_journal_is_explained(path):
    path.mkdir(parents=True)
    with pytest.raises(FogscaleError) as error:
        Journal.open(path, RUN, chain())
    assert str(path) in str(error.value)


def test_a_full_disk_is_explained_and_loses_nothing(path):
    """A limit on the size of files stands in for the disk; the last line before it is torn."""
    sizes = [len(written(path.with_name(f"{n}"), *CHANGES[:n], end=False).read_bytes()) for n in (1, 2)]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    journal = Journal.open(path, RUN, chain())
    resource.setrlimit(resource.RLIMIT_FSIZE, ((sizes[0] + sizes[1]) // 2, hard))
    try:
        journal.append(CHANGES[0])
        with pytest.raises(FogscaleError, match="cannot write"):
            journal.append(CHANGES[1])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        journal.close()
    assert len(read(path).steps) == 1


# Without a file


def test_a_journal_in_memory_holds_the_same_lines(path):
    journal = Journal.open(None, RUN, chain())
    for step in CHANGES:
        journal.append(step)
    journal.end(True, (), {})
    journal.close()
    assert b"".join(line + b"\n" for line in journal.lines) == written(path, *CHANGES).read_bytes()


def test_a_sample_log_keeps_the_truth_only():
    taken = [Sample(float(t), t, t, 0, {"map": 1}, 0) for t in range(3)]
    log = SampleLog()
    log.append(Step(seen(["fog1"]), Plan(placed("fog1")), 60.0, tuple(taken[:2])))
    log.end(True, taken[2:], {})
    assert log.samples == taken
    assert log.recorded is None


def test_a_journal_of_600_mb_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "journal.jsonl"
    path.touch()
    os.truncate(path, 600_000_000)  # it takes no room on the disk
    with pytest.raises(
        FogscaleError, match=r"journal.jsonl has 572 MiB, and 256 can be read: move its folder"
    ):
        read(path)


def test_a_journal_that_was_set_aside_meanwhile_is_not_written_to(tmp_path, monkeypatch):
    """Opened by its name, but locked only when another process has given the name away."""
    path, flock = tmp_path / "journal.jsonl", journals.fcntl.flock
    Journal.open(path, {"seed": 1}, chain()).close()

    def late(file, operation):
        monkeypatch.setattr(journals.fcntl, "flock", flock)
        path.rename(tmp_path / "journal.1.old")
        flock(file, operation)

    before = path.read_bytes()
    monkeypatch.setattr(journals.fcntl, "flock", late)
    book = Journal.open(path, {"seed": 1}, chain())
    book.end(True, (), {})
    book.close()
    assert (tmp_path / "journal.1.old").read_bytes() == before
    recorded = read(path)
    assert recorded is not None
    assert recorded.ended
