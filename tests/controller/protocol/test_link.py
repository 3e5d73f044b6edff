"""The link below the protocol: every way of losing, repeating and reordering frames, enumerated."""

from __future__ import annotations

import pytest

from controller.protocol.link import Inbox, Outbox
from controller.protocol.messages import INPUT, Address, Message

HERE = Address(0, "1")
WORDS = tuple(Message("record", INPUT, HERE, number=i) for i in range(3))


def after(world, budget):
    """Every world one event later: say, lose, repeat, deliver (in any order), connect anew."""
    said, outbox, frames, acks, inbox, heard = world
    losses, repeats, anew = budget
    if said < len(WORDS):
        pushed = outbox.push(WORDS[said])
        yield (said + 1, pushed, (*frames, pushed.unacked[-1]), acks, inbox, heard), budget
    for i, (number, word) in enumerate(frames):
        rest = frames[:i] + frames[i + 1 :]
        takes = inbox.takes(number)
        new = inbox.taken() if takes else inbox
        told = (*heard, word) if takes else heard
        yield (said, outbox, rest, (*acks, new.ack), new, told), budget
        if losses:
            yield (said, outbox, rest, acks, inbox, heard), (losses - 1, repeats, anew)
        if repeats:
            yield (said, outbox, (*frames, frames[i]), acks, inbox, heard), (losses, repeats - 1, anew)
    for i, number in enumerate(acks):
        rest = acks[:i] + acks[i + 1 :]
        yield (said, outbox.acked(number), frames, rest, inbox, heard), budget
        if losses:
            yield (said, outbox, frames, rest, inbox, heard), (losses - 1, repeats, anew)
    if anew:  # the old connection's frames may still be read, or be lost
        yield (said, outbox, (*frames, *outbox.unacked), acks, inbox, heard), (losses, repeats, anew - 1)
        yield (said, outbox, outbox.unacked, (), inbox, heard), (losses, repeats, anew - 1)


@pytest.mark.parametrize("budget", [(0, 0, 0), (1, 0, 1), (0, 1, 1), (1, 1, 1), (0, 0, 2)])
def test_what_is_heard_is_what_was_said_in_order_and_once(budget):
    start = ((0, Outbox(), (), (), Inbox(), ()), budget)
    seen, todo, complete = {start}, [start], 0
    while todo:
        world, left = todo.pop()
        heard = world[5]
        assert heard == WORDS[: len(heard)]
        # Whatever happened, sending once more what is not acked brings the rest.
        missing = [entry for entry in world[1].unacked if entry[0] >= world[4].expected]
        assert [word for _, word in missing] == list(WORDS[len(heard) : world[0]])
        complete += heard == WORDS
        for following in after(world, left):
            if following not in seen:
                seen.add(following)
                todo.append(following)
    assert complete > 0


def test_an_ack_from_nowhere_changes_nothing_it_should_not():
    outbox = Outbox().push(WORDS[0]).push(WORDS[1])
    assert outbox.acked(-1) == outbox
    assert outbox.acked(0).unacked == ((1, WORDS[1]),)
