"""Journals become typed tables; broken ones say which file and line to fix."""

from __future__ import annotations

import json
import os
import re

import pytest
from chispa import assert_df_equality
from pyspark.sql import functions as F  # noqa: N812

from analysis import runs
from analysis.runs import Tables, read_journals, read_parquet, write_parquet
from analysis.schema import SAMPLES, check
from controller.experiment import Run
from controller.recording import JOURNAL
from controller.run import execute
from fogscale.errors import FogscaleError
from tests.support.journals import older
from tests.support.runs import load_csv, run_values

pytestmark = pytest.mark.spark

RUN_ID = "demo/static/ramp/1"


@pytest.fixture
def results(tmp_path):
    return str(tmp_path / "results")


def test_a_journal_becomes_tables(spark, results, journal_lines, write_journal):
    write_journal("\n".join(journal_lines()) + "\n")
    tables = read_journals(spark, results)

    run = tables.runs.collect()[0].asDict()
    assert (run["run_id"], run["seed"], run["capacity_per_s"]) == (RUN_ID, 1, [10.0, 20.0, 30.0])
    samples = tables.samples.orderBy("sequence").collect()
    assert [(row.time_s, row.offered_records, row.replicas["map"]) for row in samples] == [
        (0.0, 0, 2), (40.0, 600, 0), (60.0, 900, 3), (100.0, 1500, 3), (110.0, 1500, 3),
    ]  # fmt: skip
    first, second = tables.decisions.orderBy("time_s").collect()
    assert first.reason == "map +1 for 25 records/s"
    assert first.operators["map"].cpu_ratio == 0.5
    assert first.operators["map"].offered_rate_per_s == 12.5  # called input_rate_per_s in older journals
    assert (first.lag_records, second.placement) == (7.0, None)
    (receipt,) = tables.receipts.collect()
    assert (receipt.outcome, receipt.downtime_s, len(receipt.placement["map"])) == ("done", 60.0, 3)
    (findings,) = tables.findings.collect()
    assert findings.run_id == RUN_ID
    assert json.loads(findings.findings)["audit"]["produced"] == 1500


def test_tables_come_back_from_parquet_as_they_were(spark, results, tmp_path, journal_lines, write_journal):
    for seed in (1, 2):
        write_journal("\n".join(journal_lines(seed=seed)) + "\n", seed=seed)
    tables = read_journals(spark, results)
    write_parquet(tables, str(tmp_path / "parquet"))
    again = read_parquet(spark, str(tmp_path / "parquet"))
    for name in Tables._fields:
        before, after = getattr(tables, name), getattr(again, name)
        assert before.dtypes == after.dtypes
        assert sorted(map(str, before.collect())) == sorted(map(str, after.collect())), name
    assert (tmp_path / "parquet/samples/of_experiment=demo/of_policy=static").is_dir()


def test_a_tail_torn_by_a_crash_is_left_out(spark, results, journal_lines, write_journal):
    whole = "\n".join(journal_lines()[:3]) + "\n"
    torn = journal_lines()[3][:-40]
    write_journal(whole + torn)
    assert read_journals(spark, results).samples.count() == 3


@pytest.mark.parametrize(
    ("number", "text", "expected"),
    [
        pytest.param(
            3, '{"kind":"step","time', "journal.jsonl, line 3: not a journal record", id="torn middle"
        ),
        pytest.param(3, "{}", "journal.jsonl, line 3: not a journal record", id="no kind"),
        pytest.param(
            2,
            '{"kind":"step","time_s":"soon"}',
            "journal.jsonl, line 2: not a journal record",
            id="text for a number",
        ),
        pytest.param(
            1, '{"kind":"end","finished":true,"samples":[]}', "line 1: not the start", id="no start"
        ),
        pytest.param(1, '{"kind":"start","version":9}', "written in format 9", id="a later format"),
    ],
)
def test_a_broken_line_is_named(spark, results, journal_lines, write_journal, number, text, expected):
    lines = journal_lines()
    lines[number - 1] = text
    write_journal("\n".join(lines) + "\n")
    with pytest.raises(FogscaleError, match=re.escape(expected)):
        read_journals(spark, results)


def test_two_different_journals_of_one_run_are_refused(spark, results, journal_lines, write_journal):
    write_journal("\n".join(journal_lines()) + "\n")
    write_journal("\n".join(journal_lines()[:3]) + "\n", policy="copy-of-static")
    with pytest.raises(FogscaleError, match=f"are both the run {RUN_ID}, and differ"):
        read_journals(spark, results)


def test_the_same_journal_in_two_places_counts_once(spark, results, journal_lines, write_journal):
    """As `compare` leaves them, where two comparisons have a policy in common."""
    for policy in ("static", "copy-of-static"):
        write_journal("\n".join(journal_lines()) + "\n", policy=policy)
    tables = read_journals(spark, results)
    assert (tables.runs.count(), tables.samples.count()) == (1, 5)


@pytest.fixture
def recorded(tmp_path):
    """A run as it is recorded today, and a way to record it below any folder."""

    def record(folder, **changes):
        load = load_csv(tmp_path, [60.0] * 3)
        execute(Run.model_validate(run_values("static", load) | changes), tmp_path / folder)
        return next((tmp_path / folder).rglob("journal.jsonl"))

    return record


@pytest.mark.parametrize("name", ["res[1]", "{a,b}", "back\\slash", "sp ace%20", "co:lon", "*?", "ümlaut"])
def test_a_path_is_a_path_and_no_pattern(spark, tmp_path, recorded, name):
    recorded(name, seed=7)
    recorded("res1", seed=8)  # what the pattern res[1] stands for
    recorded("a", seed=9)
    tables = read_journals(spark, str(tmp_path / name))
    write_parquet(tables, str(tmp_path / name / "parquet"))
    again = read_parquet(spark, str(tmp_path / name / "parquet"))
    assert [row.seed for row in again.runs.collect()] == [7]


@pytest.mark.parametrize(
    ("worked_on", "number"),
    [
        pytest.param(lambda lines: [*lines[:2], lines[-1]], 3, id="half of it, with the end"),
        pytest.param(lambda lines: [*lines[:2], *lines[3:]], 3, id="a line taken out"),
        pytest.param(lambda lines: [*lines[:2], lines[1], *lines[2:]], 3, id="a line repeated"),
        pytest.param(lambda lines: [lines[0].replace(b'"seed":1', b'"seed":2'), *lines[1:]], 1, id="edited"),
    ],
)
def test_a_journal_that_does_not_add_up_is_refused_by_line(spark, tmp_path, recorded, worked_on, number):
    path = recorded("results")
    assert read_journals(spark, str(tmp_path / "results")).runs.count() == 1
    path.write_bytes(b"".join(worked_on(path.read_bytes().splitlines(keepends=True))))
    with pytest.raises(FogscaleError, match=f"journal.jsonl, line {number}: its checksum does not fit"):
        read_journals(spark, str(tmp_path / "results"))


def test_an_older_journal_is_read_with_a_warning(spark, tmp_path, recorded, capsys):
    path = recorded("results")
    path.write_bytes(older(path.read_bytes()))
    assert read_journals(spark, str(tmp_path / "results")).runs.count() == 1
    assert "was written before lines had checksums" in capsys.readouterr().err


def test_comparisons_below_a_folder_with_runs_of_its_own_stand_apart(spark, tmp_path, recorded, capsys):
    """`run`, then something changed, then `compare`, all into one folder of results."""
    recorded("results")
    recorded("results/compare/a-b", start={"map": 3})
    assert read_journals(spark, str(tmp_path / "results")).runs.count() == 1
    assert "1 runs in" in capsys.readouterr().err
    assert read_journals(spark, str(tmp_path / "results" / "compare")).runs.count() == 1


def test_a_journal_of_600_mb_is_refused_in_words(spark, tmp_path, recorded):
    recorded("results")
    (path,) = (tmp_path / "results").rglob(JOURNAL)
    os.truncate(path, 600_000_000)  # it takes no room on the disk
    with pytest.raises(
        FogscaleError, match=r"journal.jsonl has 572 MiB, and 256 can be read: move its folder"
    ):
        read_journals(spark, str(tmp_path / "results"))


def test_links_that_lead_back_are_named_and_others_followed(spark, tmp_path, recorded):
    recorded("results")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "there").symlink_to(tmp_path / "results")
    assert read_journals(spark, str(tmp_path / "linked")).runs.count() == 1
    (tmp_path / "results" / "back").symlink_to(tmp_path / "linked")
    with pytest.raises(FogscaleError, match=r"there/back is a link to a folder in which it lies"):
        read_journals(spark, str(tmp_path / "linked"))


def test_a_pipe_among_journals_is_refused_and_not_waited_for(spark, tmp_path, recorded):
    recorded("results")
    os.mkfifo(tmp_path / "results" / JOURNAL)
    with pytest.raises(FogscaleError, match=r"results/journal.jsonl is no file"):
        read_journals(spark, str(tmp_path / "results"))


@pytest.mark.parametrize("exists", [True, False], ids=["empty folder", "no folder"])
def test_nothing_to_analyse_is_one_clear_line(spark, tmp_path, exists):
    folder = tmp_path / "results"
    if exists:
        folder.mkdir()
    with pytest.raises(FogscaleError, match=f"^no journal.jsonl under {folder}: run an experiment first"):
        read_journals(spark, str(folder))


def test_missing_tables_name_the_command_that_makes_them(spark, tmp_path):
    with pytest.raises(FogscaleError, match=r"no table runs in .*: run fogscale analyze first"):
        read_parquet(spark, str(tmp_path))


def test_check_names_every_column_that_does_not_fit(samples_table):
    table = samples_table([]).drop("lag_records", "replicas").withColumn("time_s", F.col("sequence"))
    with pytest.raises(FogscaleError) as caught:
        check(table, SAMPLES, "table samples")
    assert str(caught.value) == (
        "the table samples does not fit its schema: time_s is bigint, not double; "
        "lag_records is missing; replicas is missing"
    )


def test_check_puts_the_declared_columns_in_order(samples_table):
    table = samples_table([])
    shuffled = table.select(*reversed(table.columns)).withColumn("extra", table.sequence)
    assert_df_equality(check(shuffled, SAMPLES), table)


def test_a_journals_checksums_are_worked_out_once_and_not_for_every_line(spark, tmp_path):
    """Beside the generator, Spark would do so for each line, and copy the whole journal with each."""
    (tmp_path / JOURNAL).write_text("{}\n")
    plan = runs._lines(spark, str(tmp_path))._jdf.queryExecution().optimizedPlan().toString()
    assert plan.index("Generate posexplode") < plan.index("crc32")
