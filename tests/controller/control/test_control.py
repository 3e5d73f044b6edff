"""`fogscale control`: what it tells of a Flink of one's own, what it sends there, and what it refuses."""

import json

import pytest
from typer.testing import CliRunner

from controller.control.following import alone
from controller.control.monitor import slope_per_s
from controller.journal import read
from controller.testbeds.flink.prometheus import Series
from fogscale.cli import app
from fogscale.errors import FogscaleError
from tests.support.own_flink import JOB, MAP, NODES, own_flink

QUICK = ("--window", "2s", "--scrape", "1s")


def control(flink, tmp_path, *options, policy="thr_nlunaware", seconds="1.5s"):
    settings = tmp_path / "settings.yml"
    settings.write_text(
        "guards: {}\n"
        "rtt_ms: {uniform_ms: 5}\n"
        "policies:\n"
        "  thr_nlunaware: {parameters: {period_s: 0.3}}\n"
        "  thr_nlaware: {parameters: {period_s: 0.6}}\n"
        "  ds2: {parameters: {period_s: 0.3}}\n"
    )
    given = [
        "control", "--flink", flink.server.url, "--prometheus", flink.server.url, "--policy", policy,
        "--for", seconds, "--settings", str(settings), "--out", str(tmp_path / "out"), "--json", *QUICK,
        *options,
    ]  # fmt: skip
    done = CliRunner().invoke(app, given, catch_exceptions=False, standalone_mode=False)
    return json.loads(done.stdout)


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("FOGSCALE_STATE", str(tmp_path / "state"))
    monkeypatch.setattr("controller.testbeds.flink.http.PAUSES_S", (0.0,))


def test_who_only_watches_sends_nothing_but_questions(tmp_path):
    with own_flink(cpu_ratio=0.95) as flink:
        told = control(flink, tmp_path, "--dry-run", policy="thr_nlunaware,thr_nlaware")

    assert {request.method for request in flink.server.requests} == {"GET"}
    assert flink.running[MAP] == 2
    assert not told["driven"]
    # Both operators that may be scaled are above 90 %: one more of each, wanted once and from then on.
    for name in ("thr_nlunaware", "thr_nlaware"):
        wanted = told["policies"][name]
        assert (wanted["changes_wanted"], wanted["most_wanted"], wanted["content_ratio"]) == (1, 5, 0)
        assert wanted["mean_replicas_wanted"] == 5
    assert told["policies"]["thr_nlunaware"]["looks"] > told["policies"]["thr_nlaware"]["looks"]


def test_every_policy_has_a_journal_of_what_it_saw_and_wanted(tmp_path):
    with own_flink(cpu_ratio=0.3, pending=70) as flink:
        told = control(flink, tmp_path, "--dry-run")

    (path,) = (tmp_path / told["folder"]).glob(
        "*/policy=thr_nlunaware/workload=rides_of_a_day/*/journal.jsonl"
    )
    recorded = read(path)
    first = recorded.steps[0]
    seen = first.observation.operators["nearest_hotspot"]
    assert first.observation.placement["nearest_hotspot"] == NODES[:2]
    assert seen.cpu_ratio == pytest.approx(0.3, rel=0.01)
    assert seen.throughput_per_s == pytest.approx(100, rel=0.01)
    assert seen.offered_rate_per_s == pytest.approx(100, rel=0.01)
    assert first.observation.lag_records == 70
    assert len(first.plan.placement["nearest_hotspot"]) == 1
    assert recorded.ended
    assert recorded.findings["shadow"]["changes_wanted"] == 1


def test_a_backlog_that_grows_is_offered_too():
    """Behind back pressure a source passes on less than what reaches it."""
    pending = Series("pending", {}, (0.0, 10.0, 20.0), (0.0, 100.0, 400.0))

    assert slope_per_s(pending, 0.0) == pytest.approx(20)
    assert slope_per_s(pending, 10.0) == pytest.approx(30)
    assert slope_per_s(pending, 20.0) == 0


def test_it_drives_in_place_until_the_policy_is_content(tmp_path):
    with own_flink(cpu_ratio=0.95) as flink:
        told = control(flink, tmp_path, "--operators", "nearest_hotspot", "--max-replicas", "4", seconds="3s")

    assert flink.running[MAP] == 4
    puts = [each for each in flink.server.requests if each.method == "PUT"]
    assert [each.body[MAP]["parallelism"]["upperBound"] for each in puts] == [3, 4]
    assert {each.path for each in puts} == {f"/jobs/{JOB}/resource-requirements"}
    assert told["driven"]
    (path,) = (tmp_path / told["folder"]).glob("*/policy=*/workload=*/*/journal.jsonl")
    receipts = [receipt for step in read(path).steps for receipt in step.observation.receipts]
    # Nobody numbers the records of a job that is not ours: its downtime is not known, and not 0.
    assert [(each.outcome, each.downtime_s) for each in receipts] == [("done", None), ("done", None)]


def test_nobody_decides_without_metrics(tmp_path):
    with own_flink(cpu_ratio=0.95) as flink:
        job = flink._job

        def look() -> dict:
            """Prometheus is lost after the third look at the job."""
            flink.has_metrics = flink.server.asked("GET").count(f"/jobs/{JOB}") < 4
            return job()

        flink._job = look
        told = control(flink, tmp_path, "--dry-run")

    wanted = told["policies"]["thr_nlunaware"]
    assert wanted["without_metrics"] >= 2
    assert wanted["changes_wanted"] <= 1


@pytest.mark.parametrize(
    ("state", "options", "words"),
    [
        pytest.param(
            {}, ("--job", "ridez"), r"unknown job 'ridez'.*rides of a day", id="a job that is not there"
        ),
        pytest.param({"state": "FINISHED"}, (), "0 jobs run at .*running: none", id="no job at all"),
        pytest.param({"refuses": True}, (), "check its credentials", id="credentials refused"),
        pytest.param({}, ("--operators", "mapp"), "unknown operator of job", id="an unknown operator"),
        pytest.param(
            {"adaptive": False}, (), "cannot be rescaled in place .*--style restart", id="not adaptive"
        ),
        pytest.param({}, ("--style", "restart"), "name its --jar", id="a restart without the jar"),
        pytest.param({}, ("--style", "elastic"), "unknown style 'elastic'", id="a style of testbeds"),
        pytest.param({}, ("--window", "-1s"), "--window: -1s is no span", id="a span below zero"),
        pytest.param({}, ("--ca", "none.pem"), "cannot read none.pem", id="a CA that is not there"),
    ],
)
def test_what_cannot_be_is_one_line_and_nothing_is_touched(tmp_path, state, options, words):
    with own_flink(cpu_ratio=0.95, **state) as flink:
        with pytest.raises(FogscaleError, match=words) as caught:
            control(flink, tmp_path, *options)
        assert "\n" not in str(caught.value)
        assert {request.method for request in flink.server.requests} <= {"GET"}


def test_an_api_that_is_not_there_is_one_line(tmp_path):
    with own_flink() as flink:
        flink.server.url = "http://127.0.0.1:9"
        with pytest.raises(FogscaleError, match="cannot reach Flink at"):
            control(flink, tmp_path)


@pytest.mark.parametrize(
    ("policy", "options", "words"),
    [
        pytest.param("gesscale", (), "'gesscale' needs rtt, which the Flink at", id="nodes cannot be chosen"),
        pytest.param("ideal", (), "needs instant_rescale", id="instant rescaling"),
        pytest.param("ekf,gw", (), "one policy drives", id="two at once"),
        pytest.param("reactive", ("--dry-run",), "needs .*lag", id="what no reporter tells"),
        pytest.param("gescale", (), "did you mean gesscale", id="a name misspelt"),
    ],
)
def test_a_policy_that_asks_for_what_is_not_there_is_refused_by_name(tmp_path, policy, options, words):
    with own_flink() as flink:
        if policy == "reactive":
            flink._task = lambda vertex, task=flink._task: [
                each for each in task(vertex) if "pending" not in each["metric"]["__name__"]
            ]
        with pytest.raises(FogscaleError, match=words):
            control(flink, tmp_path, *options, policy=policy)
        assert {request.method for request in flink.server.requests} <= {"GET"}


def test_a_second_controller_on_the_same_job_is_refused(tmp_path):
    with own_flink(cpu_ratio=0.95) as flink, alone(flink.server.url, JOB):
        with pytest.raises(FogscaleError, match="another controller drives job"):
            control(flink, tmp_path)
        assert control(flink, tmp_path, "--dry-run")["ended"] == "stopped here"
