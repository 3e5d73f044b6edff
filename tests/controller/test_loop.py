"""The loop on a scripted testbed: what happens in which order, and how it resumes."""

from dataclasses import dataclass, field

import pytest

from controller.contract import Step
from controller.journal import Recorded
from controller.loop import check_capabilities, run
from controller.model import Capability, Plan, Sample
from fogscale.errors import FogscaleError
from tests.support.jobs import chain, placed, seen

PLAN = Plan(placed("fog1", "fog2"), reason="more")


@dataclass
class Diary:
    """Everything that happened, in order."""

    entries: list[str] = field(default_factory=list)


@dataclass
class Ward:
    """A testbed that lasts three minutes and writes down what is done to it."""

    diary: Diary
    time_s: float = 0.0
    offers = frozenset(Capability)
    drained = True

    @property
    def finished(self):
        return self.time_s >= 180

    def samples(self):
        self.diary.entries.append("samples")
        return iter([Sample(self.time_s, 0, 0, 0, {}, 0)])

    def observe(self):
        self.diary.entries.append("observe")
        return seen(["fog1"], time_s=self.time_s)

    def apply(self, plan):
        self.diary.entries.append(f"apply {plan.reason}")

    def wait(self, seconds):
        self.diary.entries.append(f"wait {seconds:g}")
        self.time_s += seconds

    def restore(self, steps):
        self.diary.entries.append(f"restore {len(steps)}")
        self.time_s = sum(step.waited_s for step in steps)


@dataclass
class Doctor:
    """Wants more at 60 s, and from then on looks twice as often."""

    diary: Diary
    period_s: float = 60.0
    needs = frozenset()

    def decide(self, observation):
        self.diary.entries.append(f"decide at {observation.time_s:g}")
        if observation.time_s == 60:
            self.period_s = 30.0
            return PLAN
        return None


@dataclass
class Chart:
    diary: Diary
    recorded: Recorded | None = None
    steps: list[Step] = field(default_factory=list)
    ended: tuple[bool, tuple[Sample, ...]] | None = None

    def append(self, step):
        self.diary.entries.append("journal")
        self.steps.append(step)

    def end(self, finished, samples, findings):
        self.diary.entries.append("end")
        self.ended = (finished, tuple(samples))


def played(recorded=None, progress=None):
    diary = Diary()
    chart = Chart(diary, recorded)
    run(Ward(diary), Doctor(diary), chart, progress)
    return chart


def recorded(steps, ended=False):
    return Recorded({}, chain(), chain(), tuple(steps), (), ended, ended, 0)


def test_monitor_analyze_execute_journal_wait():
    assert played().diary.entries[:12] == [
        "samples",
        "observe",
        "decide at 0",
        "journal",
        "wait 60",
        "samples",
        "observe",
        "decide at 60",
        "apply more",
        "journal",
        "wait 30",
        "samples",
    ]


def test_a_step_holds_observation_plan_wait_and_samples():
    steps = played().steps
    assert [(s.observation.time_s, s.plan, s.waited_s) for s in steps] == [
        (0, None, 60),
        (60, PLAN, 30),
        (90, None, 30),
        (120, None, 30),
        (150, None, 30),
    ]
    assert [sample.time_s for step in steps for sample in step.samples] == [0, 60, 90, 120, 150]


def test_the_end_is_journalled_with_the_last_samples():
    finished, samples = played().ended
    assert finished
    assert [sample.time_s for sample in samples] == [180]


def test_progress_tells_the_time_reached():
    reached_s = []
    played(progress=reached_s.append)
    assert reached_s == [60, 90, 120, 150, 180]


@pytest.mark.parametrize("done", [0, 1, 2, 3, 5])
def test_a_crashed_run_goes_on_where_it_stopped(done):
    whole = played()
    rest = played(recorded(whole.steps[:done]))
    assert rest.steps == whole.steps[done:]
    assert rest.ended == whole.ended


def test_resuming_decides_again_what_is_recorded_but_applies_nothing():
    whole = played()
    entries = played(recorded(whole.steps[:2])).diary.entries
    assert entries[:3] == ["decide at 0", "decide at 60", "restore 2"]
    assert "apply more" not in entries


def test_a_run_that_has_ended_is_left_alone():
    """The policy is asked again, since its code may have changed since; the testbed is not touched."""
    entries = played(recorded(played().steps, ended=True)).diary.entries
    assert entries
    assert all(entry.startswith("decide at") for entry in entries)


def test_a_policy_that_now_decides_otherwise_stops_the_run():
    first, second, *_ = played().steps
    other = second._replace(plan=Plan(placed("fog1"), reason="less"))
    with pytest.raises(FogscaleError, match=r"at 60 s the policy now decides otherwise .* use --fresh"):
        played(recorded([first, other]))


def test_capabilities_that_are_missing_are_named_in_order():
    needs = frozenset({Capability.CPU, Capability.RTT, Capability.LAG})
    check_capabilities(needs, needs, "mine", "yours")
    with pytest.raises(
        FogscaleError, match=r"policy 'mine' needs cpu, rtt, which the yours testbed does not"
    ):
        check_capabilities(needs, frozenset({Capability.LAG}), "mine", "yours")
