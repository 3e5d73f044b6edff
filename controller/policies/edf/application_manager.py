"""The application manager (§7): ranks what is asked of it, prevents conflicts, and grants all of the rest or
as many as it has tokens for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from controller.policies.edf.requests import Answer, Request

Token = Literal["H", "L"]


def by_priority(requests: Sequence[Request]) -> list[Request]:
    """The highest score first; of equals, who asked first."""
    return sorted(requests, key=lambda request: -request.score)


def without_conflicts(requests: Sequence[Request]) -> tuple[list[Request], list[Answer]]:
    """Of two that want the same node for a replica, or the same operator changed, the one of the higher score
    stays."""
    kept: list[Request] = []
    denied: list[Answer] = []
    for request in requests:
        rival = next((other for other in kept if _conflict(request, other)), None)
        if rival is None:
            kept.append(request)
        else:
            what = rival.operator if request.operator == rival.operator else request.node
            why = f"conflict: {rival.action} of {rival.operator} has {what} with a score of {rival.score:.3g}"
            denied.append(Answer(request, False, why))
    return kept, denied


def _conflict(a: Request, b: Request) -> bool:
    return a.operator == b.operator or (a.takes_a_slot and b.takes_a_slot and a.node == b.node)


@dataclass
class TokenBucket:
    """H-tokens grant scale-outs and migrations, L-tokens scale-ins; it holds one kind at a time."""

    capacity: int  # C_τ
    period_s: float  # T_τ
    low_ms: float  # τ_L
    high_ms: float  # τ_H
    kind: Token | None = field(default=None, init=False)
    tokens: int = field(default=0, init=False)
    _due_s: float = field(default=0.0, init=False)

    def refill(self, time_s: float, response_ms: float | None) -> None:
        """One token for each time that a period is over, if the response time says so."""
        if time_s < self._due_s:
            return
        self._due_s = time_s + self.period_s
        if response_ms is None:
            return
        if response_ms > self.high_ms:
            self._add("H")
        elif response_ms < self.low_ms:
            self._add("L")

    def _add(self, kind: Token) -> None:
        self.tokens = min(self.capacity, self.tokens + 1 if self.kind == kind else 1)
        self.kind = kind

    def grants(self, request: Request) -> bool:
        """Takes a token for it, if there is one of its kind."""
        if self.tokens == 0 or self.kind != ("H" if request.takes_a_slot else "L"):
            return False
        self.tokens -= 1
        return True

    @property
    def content(self) -> str:
        return f"{self.tokens} {self.kind}" if self.tokens else "no"


def answers(requests: Sequence[Request], bucket: TokenBucket | None) -> list[Answer]:
    """What becomes of each request; without a bucket all are granted that are in no conflict."""
    kept, answered = without_conflicts(by_priority(requests))
    for request in kept:
        if bucket is None:
            answered.append(Answer(request, True, "no conflict"))
            continue
        content = bucket.content
        granted = bucket.grants(request)
        answered.append(
            Answer(request, granted, f"{content} token{'s' if content == 'no' else ''} in the bucket")
        )
    return answered
