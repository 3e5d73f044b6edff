"""A run, from values to a journal: crashed at any instant and started again, it ends up the same."""

import os
import random
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from controller import journal
from controller.experiment import Run
from controller.policies import policy_class
from controller.run import execute, prepare, run_of, simulate
from fogscale.errors import FogscaleError
from tests.support.journals import rechained
from tests.support.runs import load_csv, run_values

ROOT = Path(__file__).parents[2]
RATES_PER_S = [80.0] * 4 + [260.0] * 8 + [40.0] * 8
# A child that runs into a folder and, after some steps, says so and waits to be killed.
CHILD = """
import sys
from pathlib import Path
from controller.experiment import Run
from controller.run import execute

run, results, steps = Run.model_validate_json(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
turns = 0

def progress(reached_s):
    global turns
    turns += 1
    if turns == steps:
        print("there", flush=True)
        sys.stdin.read()

execute(run, results, progress)
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    """20 minutes with a rise and a fall, noise, a slow network for a while, under a policy with memory."""
    values = run_values("gesscale", load_csv(tmp_path_factory.mktemp("load"), RATES_PER_S))
    values["testbed"] |= {
        "noise": {"relative": 0.03, "cpu_relative": 0.1, "stale_ratio": 0.1},
        "faults": [{"kind": "slow_network", "at_s": 600, "for_s": 240, "rtt_factor": 3}],
    }
    values["guards"] = {"warmup_s": 60}
    # Through JSON, as the child gets it.
    return Run.model_validate_json(Run.model_validate(values).model_dump_json())


@pytest.fixture(scope="module")
def uninterrupted(run, tmp_path_factory) -> bytes:
    return journal_bytes(run, tmp_path_factory.mktemp("whole"))


def journal_bytes(run: Run, results: Path) -> bytes:
    execute(run, results)
    return journal_path(run, results).read_bytes()


def journal_path(run: Run, results: Path) -> Path:
    return results / run.folder / "journal.jsonl"


def resumed_from(content: bytes, run: Run, results: Path) -> bytes:
    path = journal_path(run, results)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return journal_bytes(run, results)


# A run


def test_a_run_scales_and_finishes(run, tmp_path):
    execute(run, tmp_path)
    recorded = journal.read(journal_path(run, tmp_path))
    counts = {len(step.observation.requested["map"]) for step in recorded.steps}
    assert counts >= {2, 3}
    assert recorded.ended
    assert recorded.finished
    assert [step.observation.time_s for step in recorded.steps[:3]] == [0, 60, 120]


def test_the_header_says_what_analysis_needs(run, tmp_path):
    execute(run, tmp_path)
    header = journal.read(journal_path(run, tmp_path)).run
    assert header["policy"] == "gesscale"
    assert header["workload"] == "load"
    assert header["duration_s"] == 1200
    assert header["operator"] == "map"
    assert header["capacity_per_s"] == [100, 200, 300, 400, 500]
    assert (header["n_min"], header["n_max"]) == (1, 5)
    assert Run.model_validate(header["settings"]) == run


def test_the_manifest_brings_the_run_back(run, tmp_path):
    execute(run, tmp_path)
    assert run_of(tmp_path / run.folder) == run
    manifest = yaml.safe_load((tmp_path / run.folder / "run.yml").read_text(encoding="utf-8"))
    assert manifest["versions"]["numpy"]


def test_a_folder_without_a_manifest_is_explained(tmp_path):
    with pytest.raises(FogscaleError, match="holds no run"):
        run_of(tmp_path)


@pytest.mark.parametrize("text", ["", "run: {", "{}", "run: {policy: 3}"])
def test_a_broken_manifest_is_explained(tmp_path, text):
    (tmp_path / "run.yml").write_text(text, encoding="utf-8")
    with pytest.raises(FogscaleError) as error:
        run_of(tmp_path)
    assert "\n" not in str(error.value)


def test_a_campaign_sees_the_same_samples_as_a_journal(run, tmp_path):
    execute(run, tmp_path)
    recorded = journal.read(journal_path(run, tmp_path))
    header, samples = simulate(run.model_dump_json())
    assert samples == list(recorded.samples)
    assert header["seed"] == recorded.run["seed"]


def test_every_policy_meets_the_same_arrivals(run):
    ours = prepare(run).setup.inputs["source"]
    theirs = prepare(run.model_copy(update={"policy": "thr_nlaware"})).setup.inputs["source"]
    others = prepare(run.model_copy(update={"seed": 2})).setup.inputs["source"]
    assert (ours == theirs).all()
    assert (ours != others).any()


def test_a_job_with_two_sources_must_say_where_the_load_enters(tmp_path):
    values = run_values("static", load_csv(tmp_path, [100.0] * 5))
    values["topology"]["operators"].insert(0, {"name": "other", "n_max": 1})
    values["testbed"]["capacity"]["other"] = {"law": "linear", "per_replica_per_s": 1}
    with pytest.raises(FogscaleError, match=r"workload\.operator: name one of the sources other, source"):
        prepare(Run.model_validate(values))


def test_the_capacity_ladder_ends_where_the_slots_do(tmp_path):
    """n_max is 5, but only three nodes are left for map."""
    values = run_values("static", load_csv(tmp_path, [100.0] * 5))
    values["topology"]["nodes"] = values["topology"]["nodes"][:4]
    values["topology"]["rtt_ms"] = {"uniform_ms": 0}
    assert prepare(Run.model_validate(values)).setup.capacity_per_s == {"map": (100, 200, 300)}


def test_an_elastic_job_without_n_max_has_a_ladder_all_the_same(tmp_path):
    values = run_values("static", load_csv(tmp_path, [100.0] * 5))
    values["topology"] |= {"elastic": True, "rtt_ms": {"uniform_ms": 0}}
    values["topology"]["operators"][1].pop("n_max")
    ladder = prepare(Run.model_validate(values)).setup.capacity_per_s["map"]
    assert ladder[:6] == (100, 200, 300, 400, 500, 600)


# Crashes


@pytest.mark.parametrize("steps", [1, 9, 17])
def test_killed_in_mid_run_and_started_again_the_journal_is_the_same(run, uninterrupted, tmp_path, steps):
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, run.model_dump_json(), str(tmp_path), str(steps)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    with child:
        assert child.stdout.readline() == b"there\n"
        child.send_signal(signal.SIGKILL)
    assert child.returncode == -signal.SIGKILL
    left_behind = journal_path(run, tmp_path).read_bytes()
    assert len(journal.read(journal_path(run, tmp_path)).steps) == steps
    assert uninterrupted.startswith(left_behind)
    assert journal_bytes(run, tmp_path) == uninterrupted


def test_cut_at_every_byte_of_the_last_two_lines_it_is_the_same_again(run, uninterrupted, tmp_path):
    """Opened again, a journal cut anywhere is one of three, and each of the three leads to the same end."""
    prepared = prepare(run)
    header = prepared.header()
    *whole_lines, before_last, last = uninterrupted.splitlines(keepends=True)
    start, tail = b"".join(whole_lines), before_last + last
    # Without the lines between, opening is faster.
    few = b"".join([whole_lines[0], before_last, re.sub(rb'"records":\d+', b'"records":3', last)])
    head, *end_lines = rechained(few).splitlines(keepends=True)
    short = b"".join(end_lines)
    opened = set()
    for cut in range(len(short) + 1):
        path = tmp_path / f"cut-{cut}"
        path.write_bytes(head + short[:cut])
        journal.Journal.open(path, header, prepared.topology).close()
        opened.add(path.read_bytes().removeprefix(head))
    assert opened == {b"", end_lines[0], short}
    for rest in (b"", before_last, tail):
        assert resumed_from(start + rest, run, tmp_path) == uninterrupted


def test_cut_anywhere_it_is_the_same_again(run, uninterrupted, tmp_path):
    """Also just after the line that says that the network has become slow."""
    cuts = random.Random(5).sample(range(len(uninterrupted)), 40)
    ends_of_lines = [i + 1 for i, byte in enumerate(uninterrupted) if byte == ord("\n")]
    for cut in [*cuts, *ends_of_lines]:
        assert resumed_from(uninterrupted[:cut], run, tmp_path) == uninterrupted, f"cut after {cut} bytes"


def test_the_same_run_from_a_manifest_or_a_campaign_writes_the_same_journal(tmp_path):
    """Settings that were left out must not come back as other bytes than those that were given."""
    run = Run.model_validate(run_values("static", load_csv(tmp_path, [100.0] * 3)))
    again = Run.model_validate_json(run.model_dump_json())
    assert again == run
    assert journal_bytes(again, tmp_path / "b") == journal_bytes(run, tmp_path / "a")


def test_a_finished_run_is_not_run_again(run, uninterrupted, tmp_path):
    assert resumed_from(uninterrupted, run, tmp_path) == uninterrupted
    execute(run, tmp_path, progress=lambda _: pytest.fail("nothing is left to do"))
    assert journal_path(run, tmp_path).read_bytes() == uninterrupted


def test_the_manifest_names_the_versions_that_made_the_run(run, uninterrupted, tmp_path):
    """Asking for a finished run again, with a newer fogscale, does not make it one of the newer."""
    resumed_from(uninterrupted, run, tmp_path)
    manifest = tmp_path / run.folder / "run.yml"
    made_earlier = manifest.read_text(encoding="utf-8").replace("numpy: ", "numpy: 1.")
    manifest.write_text(made_earlier, encoding="utf-8")
    execute(run, tmp_path)
    assert manifest.read_text(encoding="utf-8") == made_earlier


def test_fresh_starts_over_and_keeps_what_was_there(run, uninterrupted, tmp_path):
    path = journal_path(run, tmp_path)
    for _ in range(2):
        resumed_from(uninterrupted, run, tmp_path)
        path.write_bytes(uninterrupted[:-1])
        execute(run, tmp_path, fresh=True)
        assert path.read_bytes() == uninterrupted
    assert (path.with_name("journal.1.old")).read_bytes() == uninterrupted[:-1]
    assert (path.with_name("journal.2.old")).read_bytes() == uninterrupted[:-1]


def test_fresh_saves_even_a_journal_that_cannot_be_read(run, uninterrupted, tmp_path):
    path = journal_path(run, tmp_path)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"scratched\n")
    with pytest.raises(FogscaleError, match="line 1"):
        execute(run, tmp_path)
    execute(run, tmp_path, fresh=True)
    assert path.read_bytes() == uninterrupted
    assert path.with_name("journal.1.old").read_bytes() == b"scratched\n"


def test_other_settings_in_the_same_folder_are_refused_and_nothing_is_lost(run, uninterrupted, tmp_path):
    path = journal_path(run, tmp_path)
    resumed_from(uninterrupted, run, tmp_path)
    manifest = path.with_name("run.yml").read_bytes()
    with pytest.raises(FogscaleError, match="another 'settings': use --fresh"):
        execute(run.model_copy(update={"guards": {"warmup_s": 120.0}}), tmp_path)
    assert path.read_bytes() == uninterrupted
    assert path.with_name("run.yml").read_bytes() == manifest


def test_a_changed_value_in_a_journal_is_noticed_when_it_resumes(run, uninterrupted, tmp_path):
    """The line still reads, but it is not what happened."""
    lines = uninterrupted.splitlines(keepends=True)
    lines[5] = lines[5].replace(b'"waited_s":60.0', b'"waited_s":50.0')
    with pytest.raises(FogscaleError, match="differs from the journal"):
        resumed_from(rechained(b"".join(lines[:10])), run, tmp_path)


@pytest.mark.parametrize("left", [b"", b"run: [", b"run: {}\n"], ids=["empty", "torn", "of no run"])
def test_a_damaged_manifest_is_written_anew_when_the_run_goes_on(run, uninterrupted, tmp_path, left):
    """A disk that was full once must not leave a run that nobody can replay."""
    resumed_from(uninterrupted[:-50], run, tmp_path)
    manifest = journal_path(run, tmp_path).with_name("run.yml")
    whole = manifest.read_bytes()
    manifest.write_bytes(left)
    resumed_from(uninterrupted, run, tmp_path)
    assert manifest.read_bytes() == whole
    assert run_of(manifest.parent) == run


# Refusals


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"policy": "ideal"}, id="a style the testbed does not offer"),
        pytest.param({"guards": {"warm_up": 60}}, id="an unknown guard"),
        pytest.param({"policy_parameters": {"n_mni": 1}}, id="an unknown parameter"),
        pytest.param({"policy_parameters": {"n_min": "one"}}, id="a parameter of the wrong type"),
        pytest.param({"start": {"map": 9}}, id="an impossible start"),
    ],
)
def test_a_run_that_cannot_start_leaves_nothing_behind(tmp_path, changes):
    """Else the fixed run would be told that the folder holds a run with other settings."""
    values = run_values("gesscale", load_csv(tmp_path, RATES_PER_S)) | changes
    with pytest.raises(FogscaleError):
        execute(Run.model_validate(values), tmp_path / "results")
    assert list((tmp_path / "results").rglob("*.*")) == []


def test_a_folder_that_cannot_be_written_is_explained(run, tmp_path):
    (tmp_path / "results").write_text("in the way", encoding="utf-8")
    with pytest.raises(FogscaleError, match=r"cannot write .* --out"):
        execute(run, tmp_path / "results")


def test_a_fault_that_strikes_nobody_leaves_nothing_behind_either(tmp_path):
    values = run_values("static", load_csv(tmp_path, RATES_PER_S))
    values["testbed"]["faults"] = [{"kind": "node_loss", "at_s": 60, "node": "fog9"}]
    with pytest.raises(FogscaleError, match="unknown node 'fog9'"):
        execute(Run.model_validate(values), tmp_path / "results")
    assert list((tmp_path / "results").rglob("*.*")) == []


def test_a_workload_without_records_is_explained(tmp_path):
    values = run_values("static", load_csv(tmp_path, [1.0] * 5))
    values["workload"]["scale"] = 1e-9
    with pytest.raises(FogscaleError, match="offers no records: raise its scale"):
        prepare(Run.model_validate(values))


def test_two_controllers_do_not_write_into_one_journal(run, uninterrupted, tmp_path):
    """The second one started by accident must not tangle what the first one writes."""
    first = journal.Journal.open(journal_path(run, tmp_path), prepare(run).header(), prepare(run).topology)
    try:
        with pytest.raises(FogscaleError, match="in use"):
            execute(run, tmp_path)
    finally:
        first.close()


def test_fresh_does_not_take_a_journal_away_from_a_running_controller(run, tmp_path):
    first = journal.Journal.open(journal_path(run, tmp_path), prepare(run).header(), prepare(run).topology)
    try:
        with pytest.raises(FogscaleError, match="in use"):
            execute(run, tmp_path, fresh=True)
        assert not journal_path(run, tmp_path).with_name("journal.1.old").exists()
    finally:
        first.close()


def test_a_finished_run_of_a_policy_that_has_changed_is_not_passed_off_as_the_new_one(
    run, uninterrupted, tmp_path, monkeypatch
):
    resumed_from(uninterrupted, run, tmp_path)
    monkeypatch.setattr(policy_class(run.policy), "decide", lambda _policy, _observation: None)
    with pytest.raises(FogscaleError, match="decides otherwise than the journal says"):
        execute(run, tmp_path)
    assert journal_path(run, tmp_path).read_bytes() == uninterrupted
