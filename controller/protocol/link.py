"""A reliable FIFO link over connections that break, lose, repeat or reorder: numbers, acks, sending again.
Pure values;
the protocol above it may then assume what the paper assumes, and a partition that heals is nothing but a
delay."""

from __future__ import annotations

from typing import NamedTuple

from controller.protocol.messages import Message


class Outbox(NamedTuple):
    """Sent and not acked yet: what a new connection sends again, in order."""

    next_number: int = 0
    unacked: tuple[tuple[int, Message], ...] = ()

    def push(self, message: Message) -> Outbox:
        return Outbox(self.next_number + 1, (*self.unacked, (self.next_number, message)))

    def acked(self, number: int) -> Outbox:
        """Everything up to this number has arrived. A number from the future or the past changes nothing
        more."""
        return self._replace(unacked=tuple(entry for entry in self.unacked if entry[0] > number))


class Inbox(NamedTuple):
    expected: int = 0

    def takes(self, number: int) -> bool:
        """Only the next one: earlier ones were delivered before, later ones are sent again after the gap."""
        return number == self.expected

    def taken(self) -> Inbox:
        return Inbox(self.expected + 1)

    @property
    def ack(self) -> int:
        return self.expected - 1
