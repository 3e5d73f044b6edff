"""What managers ask of the application manager, and what it answers: explicit values, journalled as notes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from controller.model import Note

Action = Literal["scale_out", "scale_in", "migrate"]
APPLICATION = "application manager"


@dataclass(frozen=True, slots=True)
class Request:
    """One reconfiguration that a manager wants (§4): an action and its score, the benefit it expects."""

    action: Action
    operator: str
    node: str  # where a replica is added, removed, or moved to
    score: float
    asked_by: str
    why: str
    moved_from: str = ""

    @property
    def takes_a_slot(self) -> bool:
        return self.action != "scale_in"

    def asked(self) -> Note:
        data: dict[str, str | float] = {"operator": self.operator, "node": self.node, "score": self.score}
        if self.moved_from:
            data["from"] = self.moved_from
        return Note(self.action, self.asked_by, APPLICATION, data | {"why": self.why})


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether a request is granted, and why."""

    request: Request
    granted: bool
    why: str

    def told(self) -> Note:
        data: dict[str, str | float] = {
            "action": self.request.action,
            "operator": self.request.operator,
            "why": self.why,
        }
        return Note("granted" if self.granted else "denied", APPLICATION, self.request.asked_by, data)
