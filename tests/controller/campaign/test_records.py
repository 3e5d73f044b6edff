"""A record is small, says how it came about, and is read like the run it was made of."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest
import yaml

from controller.campaign import records
from controller.experiment import Run, load, runs_of, varied
from controller.recording import JOURNAL, MANIFEST
from controller.run import execute
from fogscale.errors import FogscaleError

EXPERIMENT = Path(__file__).parents[3] / "paper_figures" / "gesscale" / "experiment.yml"


@pytest.fixture(scope="module")
def run() -> Run:
    return runs_of(varied(load(EXPERIMENT), {"workload.speed": 200}), ["static"], [1])[0]


@pytest.fixture(scope="module")
def results(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    execute(run, folder)
    return folder


def test_a_record_unpacks_to_the_run_it_was_made_of(run: Run, results: Path, tmp_path: Path) -> None:
    kept = records.keep(results / run.folder, tmp_path / "records", run, {"audit": {"lost": 0}})
    (place,) = records.unpacked(tmp_path / "records", tmp_path / "again")
    assert place == tmp_path / "again" / run.folder
    assert (place / JOURNAL).read_bytes() == (results / run.folder / JOURNAL).read_bytes()
    assert records.about(place) == {"audit": {"lost": 0}}
    assert sum(file.stat().st_size for file in kept.iterdir()) < records.LARGEST_BYTES
    assert records.is_over(place)


def test_a_run_counts_as_recorded_only_with_the_same_settings(
    run: Run, results: Path, tmp_path: Path
) -> None:
    assert not records.has_record(tmp_path, run)
    records.keep(results / run.folder, tmp_path, run, {})
    assert records.has_record(tmp_path, run)
    with pytest.raises(FogscaleError, match="other settings"):
        records.has_record(tmp_path, run.model_copy(update={"guards": {"warmup_s": 1.0}}))


def test_a_journal_too_large_for_a_record_is_refused(
    run: Run, results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "LARGEST_BYTES", 10)
    with pytest.raises(FogscaleError, match="more than a record may"):
        records.keep(results / run.folder, tmp_path, run, {})
    assert not records.has_record(tmp_path, run)


def test_a_record_that_unfolds_without_end_is_refused(
    run: Run, results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "LARGEST_UNPACKED_BYTES", 1 << 20)
    kept = records.keep(results / run.folder, tmp_path / "records", run, {})
    (kept / records.PACKED).write_bytes(lzma.compress(bytes((1 << 20) + 1)))
    with pytest.raises(FogscaleError, match=r"is damaged \(torn, or too large\)"):
        list(records.unpacked(tmp_path / "records", tmp_path / "unpacked"))


def test_a_damaged_record_is_named(run: Run, results: Path, tmp_path: Path) -> None:
    kept = records.keep(results / run.folder, tmp_path, run, {})
    (kept / records.PACKED).write_bytes(b"not compressed")
    with pytest.raises(FogscaleError, match=r"journal\.jsonl\.xz is damaged"):
        list(records.unpacked(tmp_path, tmp_path / "again"))
    (kept / MANIFEST).write_text(yaml.safe_dump({"nothing": 1}))
    with pytest.raises(FogscaleError, match="describes no run"):
        records.has_record(tmp_path, run)
