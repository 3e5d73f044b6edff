"""Rescaling by every style, against servers that behave as Flink and Kubernetes do."""

from __future__ import annotations

import re

import pytest

from controller.testbeds.flink import fleet as fleets
from controller.testbeds.flink.fleet import Fleet
from controller.testbeds.flink.http import Door
from controller.testbeds.flink.job import Program, RunningJob, SavepointError
from controller.testbeds.flink.kubernetes import Cluster
from controller.testbeds.flink.rescale import Rescaler
from controller.testbeds.flink.rest import Flink
from tests.support.http_server import serving

NODES = ("fog1", "fog2", "fog3")


class Fog:
    """A Flink that takes as many slots as it may and can, and a Kubernetes whose pods start at once."""

    def __init__(self):
        self.up, self.broken, self.savepoint_fails = set(), set(), False
        self.upper, self.job, self.id, self.log = 1, None, None, []
        self.jars, self.runs_unheard = set(), 0

    @property
    def used(self):
        return sorted(self.up)[: self.upper]

    def __call__(self, request):
        path = request.path.partition("?")[0]
        path = path.replace(f"/jobs/{self.id}", "/jobs/a")
        if re.search("/jobs/[0-9a-f]{32}", path):
            return 404, {"errors": ["Job not found"]}
        if found := re.search(r"taskmanager-(\w+)/scale", path):
            return self._deployment(request, found[1])
        handlers = {
            ("GET", "/taskmanagers"): lambda _: {
                "taskmanagers": [{"id": n, "slotsNumber": 1, "freeSlots": 0} for n in sorted(self.up)]
            },
            ("POST", "/jars/upload"): self._upload,
            ("POST", "/jars/j.jar/run"): self._run,
            ("POST", "/jars/j.jar/plan"): self._plan,
            ("GET", "/jobs/a"): self._look,
            ("GET", "/jobs/a/vertices/v"): lambda _: {
                "subtasks": [{"status": "RUNNING", "taskmanager-id": node} for node in self.used]
            },
            ("POST", "/jobs/a/stop"): self._stop,
            ("GET", "/jobs/a/savepoints/t"): self._savepoint,
            ("GET", "/jobs/a/resource-requirements"): lambda _: {
                "v": {"parallelism": {"lowerBound": 1, "upperBound": self.upper}}
            },
            ("PUT", "/jobs/a/resource-requirements"): self._require,
        }
        if path.startswith("/jars/j.jar/") and "j.jar" not in self.jars:
            return 404, {"errors": ["no such jar"]}
        answer = handlers[(request.method, path)](request.body)
        return None if answer is None else (200, answer)

    def _deployment(self, request, node):
        if request.method == "PATCH":
            wanted = request.body["spec"]["replicas"]
            self.log.append(f"{node}={wanted}")
            if wanted and node not in self.broken:
                self.up.add(node)
            elif not wanted:
                self.up.discard(node)
        return 200, {"spec": {"replicas": int(node in self.up)}}

    def _upload(self, _):
        self.jars.add("j.jar")
        return {"filename": "/x/j.jar"}

    def _plan(self, body):
        assert body["entryClass"] == "x.Nodes"
        self.log.append(" ".join(body["programArgsList"]))
        return {"plan": {}}

    def _run(self, body):
        assert body["jobId"] != self.id, "Flink takes a job of one id only once"
        self.upper, self.job, self.id = int(body["programArgsList"][-1]), "RUNNING", body["jobId"]
        self.log.append(f"run {self.upper} from {body.get('savepointPath')}")
        self.runs_unheard -= 1
        return None if self.runs_unheard >= 0 else {"jobid": self.id}

    def restart_jobmanager(self):
        """It forgets everything."""
        self.id = self.job = None
        self.jars.clear()

    def _look(self, _):
        vertex = {
            "id": "v", "name": "map", "parallelism": len(self.used), "maxParallelism": 128,
            "tasks": {"RUNNING": len(self.used)},
        }  # fmt: skip
        return {
            "jid": "a", "name": "n", "state": self.job, "start-time": 0, "vertices": [vertex],
            "plan": {"nodes": []},
        }  # fmt: skip

    def _stop(self, body):
        if not self.savepoint_fails:
            self.job = "FINISHED"
        self.log.append("drain" if body["drain"] else "stop")
        return {"request-id": "t"}

    def _savepoint(self, _):
        failed = {"failure-cause": {"class": "bucket full"}}
        return {
            "status": {"id": "COMPLETED"},
            "operation": failed if self.savepoint_fails else {"location": "s3://s"},
        }

    def _require(self, body):
        self.upper = body["v"]["parallelism"]["upperBound"]
        self.log.append(f"require {self.upper}")
        return {}


@pytest.fixture
def fog(monkeypatch):
    monkeypatch.setattr(fleets, "LOOK_EVERY_S", 0.01)
    return Fog()


TOLD = {"nodes_class": "x.Nodes", "always": ["services1"]}


def rescaler(server, style, tmp_path, **told):
    jar = tmp_path / "j.jar"
    jar.write_bytes(b"jar")
    flink = Flink(Door(server.url))
    program = Program(
        jar, "x.Y", lambda counts: ["--parallelism", str(counts["map"])], {"map": "map"}, **told
    )
    fleet = Fleet(Cluster(Door(server.url), "fog"), flink, NODES, patience_s=0.5)
    return Rescaler(RunningJob(flink, program, 0.5), fleet, style, ["map"])


@pytest.mark.parametrize("style", ["restart", "in_place", "elastic"])
@pytest.mark.parametrize(
    "wanted",
    [
        pytest.param(("fog1", "fog2"), id="up"),
        pytest.param(("fog3",), id="to another node"),
        pytest.param(("fog2", "fog3"), id="up, on other nodes"),
    ],
)
def test_the_node_set_is_the_plan(fog, tmp_path, style, wanted):
    with serving(fog) as server:
        made = rescaler(server, style, tmp_path)
        made.begin({"map": ("fog1",)}, {"map": 3})
        outcome = made.rescale({"map": ("fog1",)}, {"map": wanted})
        assert (outcome.done, outcome.message) == (True, "")
        assert fog.up == set(wanted)
        assert made.job.placement(made.job.look())["map"] == tuple(sorted(wanted))


def test_restart_follows_the_papers_order(fog, tmp_path):
    with serving(fog) as server:
        made = rescaler(server, "restart", tmp_path)
        made.begin({"map": ("fog1",)}, {"map": 3})
        fog.log.clear()
        made.rescale({"map": ("fog1",)}, {"map": ("fog1", "fog2")})
    assert fog.log == ["stop", "fog1=0", "fog1=1", "fog2=1", "run 2 from s3://s"]


def test_in_place_never_stops_the_job(fog, tmp_path):
    with serving(fog) as server:
        made = rescaler(server, "in_place", tmp_path)
        made.begin({"map": ("fog1", "fog2")}, {"map": 3})
        fog.log.clear()
        made.rescale({"map": ("fog1", "fog2")}, {"map": ("fog1",)})
    assert fog.log == ["require 1", "fog2=0"]


def test_a_failed_savepoint_leaves_the_job_as_it_was(fog, tmp_path):
    with serving(fog) as server:
        made = rescaler(server, "restart", tmp_path)
        made.begin({"map": ("fog1",)}, {"map": 3})
        fog.savepoint_fails = True
        outcome = made.rescale({"map": ("fog1",)}, {"map": ("fog1", "fog2")})
        assert not outcome.done
        assert "bucket full" in outcome.message
        assert (fog.up, fog.job) == ({"fog1"}, "RUNNING")


@pytest.mark.parametrize("style", ["restart", "in_place", "elastic"])
def test_a_node_that_never_comes_up_brings_the_old_set_back(fog, tmp_path, style):
    with serving(fog) as server:
        made = rescaler(server, style, tmp_path)
        made.begin({"map": ("fog1",)}, {"map": 3})
        fog.broken = {"fog2"}
        outcome = made.rescale({"map": ("fog1",)}, {"map": ("fog1", "fog2")})
        assert not outcome.done
        assert "took longer than" in outcome.message
        assert outcome.message.endswith("the job runs as it did before")
        assert (fog.up, fog.job, made.job.placement(made.job.look())["map"]) == (
            {"fog1"},
            "RUNNING",
            ("fog1",),
        )


def test_nothing_goes_on_from_a_job_that_was_drained(fog, tmp_path):
    noted = []
    with serving(fog) as server:
        made = rescaler(server, "in_place", tmp_path)
        made.begin({"map": ("fog1",)}, {"map": 3})
        made.job.noted = lambda job: noted.append((job.id, job.savepoint))
        made.job.drain()
    assert (fog.log[-1], fog.job, noted) == ("drain", "FINISHED", [(None, None)])


def test_a_job_that_cannot_be_drained_runs_on(fog, tmp_path):
    with serving(fog) as server:
        made = rescaler(server, "in_place", tmp_path)
        made.begin({"map": ("fog1",)}, {"map": 3})
        fog.savepoint_fails = True
        with pytest.raises(SavepointError, match="bucket full"):
            made.job.drain()
        assert made.runs_as({"map": ("fog1",)})


def test_every_start_and_stop_is_noted_for_a_controller_that_comes_after(fog, tmp_path):
    noted = []
    with serving(fog) as server:
        made = rescaler(server, "restart", tmp_path)
        made.job.noted = lambda job: noted.append((job.id, job.savepoint))
        made.begin({"map": ("fog1",)}, {"map": 3})
        made.rescale({"map": ("fog1",)}, {"map": ("fog2",)})
    (first, _), stopped, (second, savepoint) = noted
    assert (stopped, savepoint, first != second) == ((None, "s3://s"), "s3://s", True)


def test_a_job_is_noted_before_flink_hears_of_it(fog, tmp_path):
    """Else a controller that dies in between would leave a job that nobody knows."""
    seen = []
    with serving(fog) as server:
        made = rescaler(server, "restart", tmp_path)
        made.job.noted = lambda job: seen.append((job.id is not None, fog.id))
        made.begin({"map": ("fog1",)}, {"map": 3})
    assert seen == [(True, None)]


def test_a_start_whose_answer_was_lost_is_no_second_job(fog, tmp_path):
    with serving(fog) as server:
        made = rescaler(server, "restart", tmp_path)
        fog.runs_unheard = 1
        made.begin({"map": ("fog1",)}, {"map": 3})
        assert made.job.id == fog.id
    assert [word for word in fog.log if word.startswith("run")] == ["run 1 from None"]


def test_a_job_that_flink_forgot_comes_back_from_the_newest_state_in_the_bucket(fog, tmp_path):
    with serving(fog) as server:
        made = rescaler(server, "restart", tmp_path)
        made.job.newest_state = {}.get
        made.begin({"map": ("fog1",)}, {"map": 3})
        made.job.newest_state = {fog.id: "s3://b/checkpoints/x/chk-7"}.get
        assert not made.job.is_lost
        fog.restart_jobmanager()
        assert made.job.is_lost
        made.job.give_up()
        made.begin({"map": ("fog1",)}, {"map": 3})
        assert made.runs_as({"map": ("fog1",)})
    assert fog.log[-1] == "run 1 from s3://b/checkpoints/x/chk-7"


def test_a_start_that_flink_may_still_be_at_keeps_its_id(fog, tmp_path):
    """The controller died between noting and starting: whichever start arrives, there is one job."""
    with serving(fog) as server:
        made = rescaler(server, "restart", tmp_path)
        made.job.newest_state = {}.get
        made.job.resume_from("0" * 32, "s3://s")
        assert made.job.id is None
        made.begin({"map": ("fog1",)}, {"map": 3})
        assert made.job.id == "0" * 32
    assert fog.log[-1] == "run 1 from s3://s"


def test_a_jobmanager_that_dies_during_a_restart_costs_no_job(fog, tmp_path):
    """It has forgotten the job when the savepoint is asked for: the old set comes back from the bucket."""
    with serving(fog) as server:
        made = rescaler(server, "restart", tmp_path)
        made.begin({"map": ("fog1",)}, {"map": 3})
        made.job.newest_state = {fog.id: "s3://b/chk-3"}.get
        fog.restart_jobmanager()
        outcome = made.rescale({"map": ("fog1",)}, {"map": ("fog1", "fog2")})
        assert not outcome.done
        assert outcome.message.endswith("the job runs as it did before")
        assert made.runs_as({"map": ("fog1",)})
    assert fog.log[-1] == "run 1 from s3://b/chk-3"


@pytest.mark.parametrize(
    ("style", "log"),
    [
        pytest.param(
            "restart",
            ["stop", "fog1=0", "fog2=0", "fog2=1", "--use fog2,services1", "run 1 from s3://s"],
            id="restart: before it starts again",
        ),
        pytest.param(
            "in_place",
            ["--use fog2,services1", "require 1", "fog1=0"],
            id="in_place: before slots are given back, so that the right ones are",
        ),
        pytest.param(
            "elastic",
            ["--use fog1,fog2,services1", "--use fog2,services1", "fog1=0"],
            id="elastic: before TaskManagers come, and before they leave",
        ),
    ],
)
def test_flink_is_told_on_which_nodes_the_job_may_run(fog, tmp_path, style, log):
    with serving(fog) as server:
        made = rescaler(server, style, tmp_path, **TOLD)
        made.begin({"map": ("fog1", "fog2")}, {"map": 3})
        assert "--use fog1,fog2,services1" in fog.log
        fog.log.clear()
        made.rescale({"map": ("fog1", "fog2")}, {"map": ("fog2",)})
        assert fog.log == log
        fog.log.clear()
        made.job.release_nodes()
        assert fog.log == ["--use all"]


def test_a_jobmanager_that_has_lost_the_jar_is_told_all_the_same(fog, tmp_path):
    with serving(fog) as server:
        made = rescaler(server, "restart", tmp_path, **TOLD)
        made.job.use(["fog1"])
        fog.restart_jobmanager()
        made.job.use(["fog2"])
    assert fog.log == ["--use fog1,services1", "--use fog2,services1"]


def test_a_node_on_standby_stays_up_and_runs_nothing(fog, tmp_path):
    with serving(fog) as server:
        made = rescaler(server, "in_place", tmp_path, **TOLD)
        made.begin({"map": ("fog1",)}, {"map": 3})
        made.keep_on_standby({"map": ("fog1",)}, ["fog3"])
        assert fog.up == {"fog1", "fog3"}
        assert made.runs_as({"map": ("fog1",)})
        fog.log.clear()
        made.keep_on_standby({"map": ("fog1",)}, ["fog3"])
        assert fog.log == []


@pytest.mark.parametrize(
    ("style", "log"),
    [
        pytest.param(
            "in_place",
            ["fog2=1", "--use fog1,fog3,services1", "require 2"],
            id="in_place: the job waits for nobody, and another node gets ready meanwhile",
        ),
        pytest.param(
            "restart",
            ["stop", "fog1=0", "fog2=1", "fog1=1", "--use fog1,fog3,services1", "run 2 from s3://s"],
            id="restart: the TaskManagers that were in use begin anew",
        ),
    ],
)
def test_a_scale_up_uses_the_node_on_standby_without_starting_it(fog, tmp_path, style, log):
    with serving(fog) as server:
        made = rescaler(server, style, tmp_path, **TOLD)
        made.begin({"map": ("fog1",)}, {"map": 3})
        made.keep_on_standby({"map": ("fog1",)}, ["fog3"])
        fog.log.clear()
        assert made.rescale({"map": ("fog1",)}, {"map": ("fog1", "fog3")}, ["fog2"]).done
        assert (fog.log, fog.up, made.fleet.standby) == (log, {"fog1", "fog2", "fog3"}, {"fog2"})


def test_a_node_that_is_given_up_can_stay_on_standby(fog, tmp_path):
    with serving(fog) as server:
        made = rescaler(server, "in_place", tmp_path, **TOLD)
        made.begin({"map": ("fog1", "fog2")}, {"map": 3})
        assert made.rescale({"map": ("fog1", "fog2")}, {"map": ("fog1",)}, ["fog2"]).done
        assert fog.up == {"fog1", "fog2"}
        fog.log.clear()
        assert made.rescale({"map": ("fog1",)}, {"map": ("fog1",)}).done
        assert "fog2=0" not in fog.log  # nobody said that it should go
