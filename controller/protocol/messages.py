"""What agents send each other, and the local events that make them act. All are immutable and hashable."""

from __future__ import annotations

from typing import NamedTuple

INPUT_OPERATOR = -1  # the input acts as the predecessor of the first operator

DUPLICATION = "duplication"
DUPLICATION_ACK = "duplication_ack"
START = "start"
DELETION = "deletion"
DELETION_ACK = "deletion_ack"
COUNT = "count"  # asks a predecessor for n_t (§4.1.1); counted apart
COUNT_REPLY = "count_reply"
RECORD = "record"
RETURN = "return"  # beyond the paper: to a peer that was given up, or gave up the sender; answered by welcome
WELCOME = "welcome"

SCALING_KINDS = (DUPLICATION, DUPLICATION_ACK, START, DELETION, DELETION_ACK)  # what the paper counts


class Address(NamedTuple):
    """Where an instance lives. Its operator's place in the pipeline tells neighbours apart; names are never
    reused."""

    operator: int
    name: str

    def __str__(self) -> str:
        return "input" if self.operator == INPUT_OPERATOR else f"O{self.operator},{self.name}"

    def child(self, number: int) -> Address:
        """A name that nobody else can give, without asking anybody."""
        return Address(self.operator, f"{self.name}.{number}")


INPUT = Address(INPUT_OPERATOR, "input")
Addresses = frozenset[Address]
NOBODY: Addresses = frozenset()


class Message(NamedTuple):
    kind: str
    sender: Address
    receiver: Address
    operation: int = 0  # the initiator's number of the operation that an ack belongs to
    addresses: Addresses = NOBODY  # the new instances, or the leaving one; of a return: children to be met
    succs: Addresses = NOBODY  # of a start: the new instance's neighbours
    preds: Addresses = NOBODY
    told: Addresses = NOBODY  # of a deletion: everybody who gets it
    number: int = 0  # of a record: its number; of a count reply: n_t


class Duplicate(NamedTuple):
    """The nodes are there: announce them (Algorithm 4 from line 10 on)."""

    children: tuple[Address, ...]


class Delete(NamedTuple):
    """Leave (Algorithm 8 from line 4 on)."""


class Forward(NamedTuple):
    """The first record of the queue is processed; its result goes to one successor, none for the last
    operator."""

    to: Address | None


class Tick(NamedTuple):
    """The period is over: what arrived here meanwhile, and one uniform draw from [0, 1) for the decision."""

    load: float
    draw: float


class Gone(NamedTuple):
    """Beyond the paper: the testbed's word that a peer has ended without saying so."""

    peer: Address


class TimedOut(NamedTuple):
    """Beyond the paper: the peer has left something unanswered for too long. It may be alive all the same."""

    peer: Address


class Reachable(NamedTuple):
    """Beyond the paper: there is a connection again to a peer that was given up."""

    peer: Address


class Joined(NamedTuple):
    """Beyond the paper: the testbed's word that it has started a peer itself, which no agent announced."""

    peer: Address


class Keep(NamedTuple):
    """Beyond the paper: the testbed makes the agent a keeper, since its operator has lost one."""


Event = Message | Duplicate | Delete | Forward | Tick | Gone | TimedOut | Reachable | Joined | Keep
