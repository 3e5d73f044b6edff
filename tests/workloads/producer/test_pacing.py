"""The open loop against a clock of the test's own: the schedule goes on whatever the broker does."""

from itertools import count

import numpy as np
import pytest

from tests.support.records import Counted
from workloads.producer import header
from workloads.producer.chunks import Task, chunks
from workloads.producer.pacing import TICK_S, Pacer
from workloads.producer.schedule import Schedule
from workloads.producer.tasks import shared


class Outlet:
    """Room for some records; acknowledges at a rate, except while it is away. Its polls move the clock."""

    def __init__(self, room=1000, per_s=10_000.0, away=(0.0, 0.0)):
        self.room, self.per_s, self.away = room, per_s, away
        self.now_s, self.credit, self.acknowledged = 0.0, 0.0, 0
        self.taken = []  # time, number
        self.most_waiting = 0

    def offer(self, chunk, first, until):
        until = min(until, first + self.room - self.waiting())
        for *_, headers in chunk.messages(first, until):
            self.taken.append((self.now_s, header.read(headers)[1]))
        self.most_waiting = max(self.most_waiting, self.waiting())
        return until

    def waiting(self):
        return len(self.taken) - self.acknowledged

    def poll(self, timeout_s):
        passed_s = max(timeout_s, 0.0001)
        self.now_s += passed_s
        if not self.away[0] <= self.now_s < self.away[1]:
            self.credit += passed_s * self.per_s
            served = min(self.waiting(), int(self.credit))
            self.acknowledged += served
            self.credit = self.credit - served if self.waiting() else 0.0


def paced(outlet, counts=(100,) * 10, look_up=lambda _pacer: None, **settings):
    plan = Schedule(np.array(counts), **settings)
    task = Task("t", plan, Counted(), seed=1, run="r")
    pacer = Pacer(task, outlet, lambda: outlet.now_s, 0.0)
    pacer.run(look_up)
    return pacer


def test_every_record_is_handed_over_within_ticks_of_its_time():
    outlet = Outlet()
    pacer = paced(outlet, counts=(100, 0, 700, 20))
    due_s = pacer.task.schedule.due_s(np.array([number for _, number in outlet.taken]))
    late_s = np.array([time_s for time_s, _ in outlet.taken]) - due_s
    assert [number for _, number in outlet.taken] == list(range(820))
    assert late_s.min() > 0
    assert late_s.max() < 3 * TICK_S
    sent_per_s = pacer.tally.sent_per_s
    assert [sent_per_s.get(second, 0) for second in range(4)] == pytest.approx([100, 0, 700, 20], abs=2)
    assert (pacer.tally.sent, pacer.tally.acknowledged, pacer.tally.position) == (820, 820, 820)


def test_an_outage_is_caught_up_and_reported():
    # Away from 2 to 5 s: what is due at 2 s waits 3 s. 300 records wait, 100 more come per second, 1000 are
    # served: caught up at 5 + 300 / 900 s. A record due at t is served at 5 + (t - 2) / 10, which is more
    # than 1 s later until t = 3.8 / 0.9 = 4.22 s: 222 records are late.
    outlet = Outlet(room=50, per_s=1000, away=(2.0, 5.0))
    pacer = paced(outlet, look_up=lambda pacer: pacer.count_backlog())
    tally = pacer.tally
    assert tally.lateness.max_s == pytest.approx(3.0, abs=0.05)
    assert tally.lateness.late_records == pytest.approx(222, abs=8)
    assert tally.behind_s == pytest.approx(5.22 - 3.0, abs=0.15)
    assert tally.backlog_peak == pytest.approx(300, abs=15)
    assert outlet.most_waiting == 50  # no more than there is room for: the rest is only a number
    after_s = [time_s for time_s, number in outlet.taken if number >= 550]
    assert max(tally.sent_per_s) == 9
    assert min(after_s) < 5.6  # on schedule again


def test_the_schedule_does_not_wait_for_a_slow_broker():
    # 100 per second come, 50 are served: after 10 s, half of all still waits, and is served by 20 s.
    pacer = paced(outlet := Outlet(room=20, per_s=50))
    assert outlet.now_s == pytest.approx(20, abs=0.5)
    assert pacer.tally.lateness.max_s == pytest.approx(10, abs=0.5)
    assert pacer.tally.acknowledged == 1000


def test_records_are_handed_over_by_the_tick_not_one_by_one():
    # 20,000 per second are 40 in a tick: as many offers as ticks, not as records.
    outlet = Outlet(per_s=1e6)
    paced(outlet, counts=(20_000,))
    offers = len({time_s for time_s, _ in outlet.taken})
    assert offers == pytest.approx(1.0 / TICK_S, rel=0.1)


def test_a_moment_without_a_core_is_caught_up_without_rendering():
    # Rendering takes 3 ms a chunk here, sending none: after half a second without a core, all that was missed
    # is handed over at once, because it was rendered while there was time.
    rendered_s = []

    class Slow(Counted):
        def batch(self, *arguments):
            outlet.now_s += 0.003
            rendered_s.append(outlet.now_s)
            return super().batch(*arguments)

    stolen = []

    def steal(_pacer):
        if outlet.now_s > 1.0 and not stolen:
            stolen.append(outlet.now_s)
            outlet.now_s += 0.5

    outlet = Outlet(room=10**6, per_s=1e6)
    plan = Schedule(np.array([40_000] * 3))
    Pacer(Task("t", plan, Slow(), seed=1, run="r"), outlet, lambda: outlet.now_s, 0.0).run(steal)
    back_s = stolen[0] + 0.5
    caught_up_s = min(time_s for time_s, number in outlet.taken if number >= 40_000 * back_s)
    assert caught_up_s < back_s + 0.02
    assert not [time_s for time_s in rendered_s if back_s < time_s < caught_up_s]


def test_an_interrupted_run_ends_at_the_record_it_was_told():
    def stop_at_300(pacer):
        if pacer.tally.position >= 250:
            pacer.until = 300

    outlet = Outlet()
    pacer = paced(outlet, copies=2, look_up=stop_at_300)
    assert [number for _, number in outlet.taken] == list(range(600))
    assert (pacer.tally.position, pacer.tally.acknowledged) == (300, 600)


def test_a_share_without_a_key_is_asked_for_orders_too():
    plan, asked = Schedule(np.array([2000] * 5)), []
    *_, none = shared(Task("t", plan, Counted(keys=1), 1, "r"), 2)
    assert not len(next(chunks(none, 0.0)))
    clock = count(step=0.05)

    def stop(pacer):
        asked.append(pacer.count_backlog())
        pacer.until = 3000

    pacer = Pacer(none, Outlet(), lambda: next(clock), 0.0)
    pacer.run(stop)
    assert asked
    assert pacer.tally.sent == 0


def test_shares_that_end_together_leave_no_hole():
    plan = Schedule(np.array([100] * 5))
    sent = []
    for task in shared(Task("t", plan, Counted(keys=3), 1, "r"), 4):  # one share has no key at all
        outlet = Outlet()
        pacer = Pacer(task, outlet, lambda outlet=outlet: outlet.now_s, 0.0)

        def stop(pacer):
            pacer.until = 123

        pacer.run(stop)
        assert pacer.tally.position == max([0, *(number + 1 for _, number in outlet.taken)]) <= 123
        sent += [number for _, number in outlet.taken]
    assert sorted(sent) == list(range(123))
