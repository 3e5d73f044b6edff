"""Plans that are carried out: one at a time, in a thread, each with a receipt that tells the downtime."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from controller.contract import Step
from controller.model import Placement, Plan, Receipt
from controller.testbeds.flink.http import UnreachableError
from controller.testbeds.flink.incidents import Incidents
from controller.testbeds.flink.ledger import Ledger
from controller.testbeds.flink.rescale import Outcome, Rescaler
from controller.testbeds.flink.status import Decision
from fogscale.errors import FogscaleError

OUTPUT_WITHIN_S = 30.0  # after a rescale, where there is anything to process
LOOK_EVERY_S = 0.1


@dataclass(frozen=True)
class Rescale:
    """One that was carried out, with both downtimes: for the report."""

    requested_s: float
    finished_s: float
    style: str
    before: dict[str, tuple[str, ...]]
    wanted: dict[str, tuple[str, ...]]
    outcome: str
    silent_s: float  # longest time without a processed record
    commit_silent_s: float | None = None  # and without a committed one; None until one is seen
    message: str = ""


class Reconfigurations:
    """`requested` is what was last asked for and accepted."""

    def __init__(
        self,
        rescaler: Rescaler,
        ledger: Ledger,
        now_s: Callable[[], float],
        has_work: Callable[[], bool],
        requested: Placement,
        incidents: Incidents,
        most: Mapping[str, int],  # replicas of each operator that follows the load
    ) -> None:
        self.requested: dict[str, tuple[str, ...]] = {name: tuple(nodes) for name, nodes in requested.items()}
        self.count = 0
        self.last: Decision | None = None
        self.running_since_s = time.time()  # by the clock: since when the job runs as it does
        self.earlier: tuple[dict[str, Any], ...] = ()  # carried out by a controller that is gone
        self._rescaler, self._ledger, self._now_s, self._has_work = rescaler, ledger, now_s, has_work
        self._incidents, self._most = incidents, most
        self._receipts: list[Receipt] = []
        self._done: list[Rescale] = []
        self._lock = threading.Lock()
        self._worker: threading.Thread | None = None
        self._failure: Exception | None = None

    @property
    def is_busy(self) -> bool:
        return self._worker is not None and self._worker.is_alive()

    def refuse(self, plan: Plan, problem: str) -> None:
        now_s = self._now_s()
        self.last = Decision(now_s, _change(self.requested, self.wanted_by(plan)), "refused")
        self._settle(Receipt(plan, "refused", now_s, now_s, message=problem))

    def wanted_by(self, plan: Plan) -> dict[str, tuple[str, ...]]:
        return {**self.requested, **{name: tuple(nodes) for name, nodes in plan.placement.items()}}

    def start(self, plan: Plan, standby: Collection[str] = ()) -> None:
        """`standby`: nodes that are to have an idle TaskManager."""
        wanted, now_s = self.wanted_by(plan), self._now_s()
        if wanted == self.requested:
            self._settle(self._with_standby(plan, standby, now_s))
            return
        before, self.requested = self.requested, wanted
        self.count += 1
        self.last = Decision(now_s, _change(before, wanted), "…")
        self._work(lambda: self._carry_out(plan, before, wanted, standby, now_s))

    def recover(self) -> None:
        """The job is gone, as when its JobManager died: it comes back as it was asked for."""
        self._work(self._bring_back)

    def _work(self, task: Callable[[], None]) -> None:
        def work() -> None:
            try:
                task()
            except Exception as error:  # shown by the main thread, which would wait for a receipt in vain
                self._failure = error

        self._worker = threading.Thread(target=work, name="reconfiguration", daemon=True)
        self._worker.start()

    def check(self) -> None:
        """Raises what ended a reconfiguration before its end."""
        if self._failure is not None:
            reason = f"{type(self._failure).__name__}: {self._failure}"
            raise FogscaleError(
                f"a reconfiguration broke off ({reason}): run it again to go on"
            ) from self._failure

    def go_on(self, plan: Plan | None, before: Placement, asked_s: float, now_s: float) -> None:
        """With what a controller that is gone left: the job is brought to what was asked for last. A plan it
        never heard the end of has its receipt then."""
        job, is_new = self._rescaler.job, plan is not None
        outcome = Outcome(True, "carried out when the controller was back" if is_new else "")
        if job.id is None:
            self._rescaler.begin(self.requested, self._most)
        elif self._rescaler.runs_as(self.requested):
            outcome = Outcome(True, "done when the controller came back" if is_new else "")
        else:
            tried = self._rescaler.rescale(before, self.requested)
            if not tried.done:
                outcome, self.requested = tried, dict(before)
        if plan is not None:
            word: Literal["done", "failed"] = "done" if outcome.done else "failed"
            # The run's clock stood still meanwhile: a downtime by it would be none of the job.
            self._settle(Receipt(plan, word, asked_s, now_s, None, outcome.message))

    def finish(self) -> None:
        """Waits for the one in progress."""
        if self._worker is not None:
            self._worker.join()

    def receipts(self) -> tuple[Receipt, ...]:
        """Since the last call."""
        with self._lock:
            taken, self._receipts = self._receipts, []
        return tuple(taken)

    def note_commits(self) -> None:
        """Completes those whose output was not committed yet when they were done."""
        for position, each in enumerate(self._done):
            if each.commit_silent_s is None and self._ledger.committed_since(each.finished_s):
                silent_s = self._ledger.committed_silence_s(each.requested_s, each.finished_s)
                self._done[position] = replace(each, commit_silent_s=round(silent_s, 3))

    def done(self) -> list[dict[str, Any]]:
        self.note_commits()
        return [*self.earlier, *(asdict(each) for each in self._done)]

    def _carry_out(
        self,
        plan: Plan,
        before: dict[str, tuple[str, ...]],
        wanted: dict[str, tuple[str, ...]],
        standby: Collection[str],
        begun_s: float,
    ) -> None:
        outcome = self._rescaler.rescale(before, wanted, standby)
        if not outcome.done:
            self.requested = before
        self._wait_for_output()
        finished_s = self._now_s()
        silent_s = self._ledger.silence_s(begun_s, finished_s)
        word = "done" if outcome.done else "failed"
        self.last = Decision(begun_s, _change(before, wanted), word)
        self._done.append(
            Rescale(
                begun_s, finished_s, self._rescaler.style, before, wanted, word, round(silent_s, 3),
                message=outcome.message,
            )
        )  # fmt: skip
        self._settle(
            Receipt(
                plan,
                "done" if outcome.done else "failed",
                begun_s,
                finished_s,
                round(silent_s, 3),
                outcome.message,
            )
        )

    def _with_standby(self, plan: Plan, standby: Collection[str], now_s: float) -> Receipt:
        try:
            self._rescaler.keep_on_standby(self.requested, standby)
        except UnreachableError as error:
            return Receipt(plan, "failed", now_s, self._now_s(), message=str(error))
        return Receipt(plan, "unchanged", now_s, now_s, message="already so")

    def _wait_for_output(self) -> None:
        self.running_since_s, runs_s = time.time(), self._now_s()
        deadline_s = time.monotonic() + OUTPUT_WITHIN_S
        while self._has_work() and not self._ledger.processed_since(runs_s) and time.monotonic() < deadline_s:
            time.sleep(LOOK_EVERY_S)

    def _bring_back(self) -> None:
        begun_s = self._now_s()
        try:
            if not self._rescaler.job.is_lost:
                return
            self._rescaler.job.give_up()
            self._incidents.tell("lost", "job", goes_on_from=self._rescaler.job.savepoint or "the start")
            self._rescaler.begin(self.requested, self._most)
        except FogscaleError as error:  # the next look tries again
            self._incidents.tell("not resumed", "job", reason=str(error))
            return
        self._wait_for_output()
        silent_s = self._ledger.silence_s(begun_s, self._now_s())
        self._incidents.tell("resumed", "job", silent_s=round(silent_s, 1))

    def _settle(self, receipt: Receipt) -> None:
        with self._lock:
            self._receipts.append(receipt)


def _change(before: Placement, wanted: Placement) -> str:
    changes = [
        f"{name} {len(before[name])}→{len(nodes)}" for name, nodes in wanted.items() if nodes != before[name]
    ]
    return ", ".join(changes)


def unsettled(steps: Sequence[Step]) -> list[Step]:
    """Those with a plan of which no later observation holds the receipt."""
    waiting: list[Step] = []
    for step in steps:
        for receipt in step.observation.receipts:
            settled = next((each for each in waiting if each.plan == receipt.plan), None)
            if settled is not None:
                waiting.remove(settled)
        if step.plan is not None:
            waiting.append(step)
    return waiting
