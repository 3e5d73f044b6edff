"""Replays through a real broker: restarts, kills and interrupts lose nothing and send nothing twice."""

import os
import signal
import threading
import time

import numpy as np
import pytest

from fogscale.errors import FogscaleError
from tests.support.records import Counted
from workloads.producer.audit import judge, read
from workloads.producer.chunks import Task
from workloads.producer.processes import processes_needed, send
from workloads.producer.schedule import Schedule
from workloads.producer.tasks import shared

pytestmark = pytest.mark.kafka


def task_of(topic, counts, copies=1, keys=997):
    return Task(topic, Schedule(np.array(counts), copies), Counted(keys, padding=60), seed=1, run="r")


def audited(broker, topic, expected):
    return judge("r", read(broker.bootstrap, topic).runs["r"], range(expected))


def once(condition, action):
    """Does something the first time that the condition holds for what the processes tell."""
    done = []

    def tell(tallies):
        if not done and condition(tallies):
            done.append(True)
            action()

    return tell, done


def acknowledged(tallies):
    return sum(tally.acknowledged for tally in tallies)


def test_a_million_records_survive_a_restart_of_the_broker(broker, topic):
    def restart():
        broker.stop()
        broker.start()

    tell, restarted = once(lambda tallies: acknowledged(tallies) > 200_000, restart)
    outcome = send([task_of(topic, [100_000] * 10)], broker.bootstrap, {}, tell=tell)
    assert restarted
    assert acknowledged(outcome.tallies) == 1_000_000
    assert outcome.tallies[0].lateness.max_s > 1  # the outage was felt, and is reported
    verdict = audited(broker, topic, 1_000_000)
    assert verdict.clean, verdict.text
    assert verdict.records == 1_000_000


def test_a_killed_broker_loses_and_doubles_nothing(broker, topic):
    def kill():
        broker.kill()
        broker.start()

    tell, killed = once(lambda tallies: acknowledged(tallies) > 30_000, kill)
    outcome = send(shared(task_of(topic, [20_000] * 10), 2), broker.bootstrap, {}, tell=tell)
    assert killed
    assert acknowledged(outcome.tallies) == 200_000
    verdict = audited(broker, topic, 200_000)
    assert verdict.clean, verdict.text


def test_several_processes_keep_the_order_per_key(broker, topic):
    tasks = shared(task_of(topic, [20_000] * 3, copies=2, keys=50), 3)
    outcome = send(tasks, broker.bootstrap, {})
    assert all(tally.sent > 0 for tally in outcome.tallies)
    verdict = audited(broker, topic, 120_000)
    assert verdict.clean, verdict.text


@pytest.mark.quiet
def test_the_broker_gets_each_second_what_the_schedule_says(broker, new_topic, require):
    """Within 1 %, in every second in which the machine itself was on time: handed over in every replay, and
    appended, by the broker's own clock, in one of five, since the broker may pause."""
    counts = np.random.default_rng(1).poisson(1000, 12)
    appended_errors = []
    for _ in range(5):
        topic = new_topic(message_timestamp_type="LogAppendTime")
        with Metronome() as metronome:
            outcome = send([task_of(topic, counts)], broker.bootstrap, {})
        stamps_ms = [message.timestamp()[1] for message in broker.messages(topic)]
        appended_s = (np.array(stamps_ms) - outcome.start.zero_ms) / 1000
        appended = np.bincount(appended_s.astype(int), minlength=12)
        sent = np.array([outcome.tallies[0].sent_per_s.get(second, 0) for second in range(12)])
        assert outcome.tallies[0].sent == appended.sum() == counts.sum()
        on_time = [second for second in range(1, 12) if metronome.on_time(outcome.start.zero_s + second)]
        if on_time:
            assert np.abs(sent / counts - 1)[on_time].max() <= 0.01, (sent, counts, on_time)
            appended_errors.append(np.abs(appended[:12] / counts - 1)[on_time].max())
            if appended_errors[-1] <= 0.01:
                return
    require("quiet", bool(appended_errors), "a thread that only sleeps is woken late in every second")
    pytest.fail(f"the largest error of a second in each replay: {appended_errors}")


class Metronome:
    """A thread that only sleeps, and notes where it was woken late: then so was everyone else."""

    def __enter__(self):
        self._late, self._ended = [], threading.Event()
        self._thread = threading.Thread(target=self._tick)
        self._thread.start()
        return self

    def __exit__(self, *_error):
        self._ended.set()
        self._thread.join()

    def _tick(self):
        while not self._ended.is_set():
            asleep_s = time.monotonic()
            time.sleep(0.001)
            if time.monotonic() - asleep_s > 0.005:
                self._late.append(time.monotonic())

    def on_time(self, start_s):
        """Records cross from one second into another at its two ends: that is where it matters."""
        edges_s = (start_s, start_s + 1)
        return not any(abs(late_s - edge_s) < 0.3 for late_s in self._late for edge_s in edges_s)


def test_an_interrupted_run_can_go_on_where_it_stopped(broker, topic):
    task = task_of(topic, [2000] * 300, keys=40)
    tell, told = once(lambda tallies: acknowledged(tallies) > 0, lambda: None)
    first = send(shared(task, 3), broker.bootstrap, {}, interrupts=lambda: len(told), tell=tell)
    assert first.interrupted
    stopped_at = max(tally.position for tally in first.tallies)
    assert 0 < stopped_at < 600_000
    assert acknowledged(first.tallies) == stopped_at
    assert audited(broker, topic, stopped_at).clean

    rest = task.schedule.window(stopped_at, stopped_at + 3000)
    send([Task(topic, rest, task.records, task.seed, task.run)], broker.bootstrap, {})
    verdict = audited(broker, topic, stopped_at + 3000)
    assert verdict.clean, verdict.text


def test_an_interrupt_while_the_broker_is_away_ends_the_run(broker, topic):
    stopped_s = []

    def stop():
        broker.stop()
        stopped_s.append(time.monotonic())

    tell, _ = once(lambda tallies: acknowledged(tallies) > 0, stop)
    try:
        outcome = send(
            [task_of(topic, [1000] * 600)],
            broker.bootstrap,
            {},
            interrupts=lambda: int(bool(stopped_s) and time.monotonic() > stopped_s[0] + 2),
            tell=tell,
        )
    finally:
        broker.start()
    assert outcome.interrupted
    (tally,) = outcome.tallies
    assert 0 < tally.acknowledged < tally.sent < 600_000


def test_a_process_that_dies_ends_the_run_with_one_line(broker, topic):
    import multiprocessing

    def kill_one():
        os.kill(multiprocessing.active_children()[0].pid, signal.SIGKILL)

    tell, _ = once(lambda tallies: acknowledged(tallies) > 0, kill_one)
    with pytest.raises(FogscaleError, match=r"sending process \d died \(exit code -9\).*records were sent"):
        send(shared(task_of(topic, [1000] * 60), 2), broker.bootstrap, {}, tell=tell)
    assert not multiprocessing.active_children()


def test_a_faulty_format_ends_the_run_with_one_line(broker, topic):
    with pytest.raises(FogscaleError, match="ZeroDivisionError"):
        send([task_of(topic, [1000], keys=0)], broker.bootstrap, {})


@pytest.mark.parametrize(
    ("peak_per_s", "record_us", "cores", "processes"),
    [
        pytest.param(1000, 10, 8, 1, id="one is enough"),
        pytest.param(100_000, 10, 8, 2, id="one second of work per second needs two at 60 % each"),
        pytest.param(1_000_000, 10, 4, 4, id="never more than cores"),
    ],
)
def test_processes_by_rate(peak_per_s, record_us, cores, processes):
    assert processes_needed(peak_per_s, record_us * 1e-6, cores) == processes
