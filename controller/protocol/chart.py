"""A run as a message sequence chart: one column per agent, one row per event; as text and as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from controller.protocol.messages import (
    DELETION,
    DUPLICATION,
    RECORD,
    START,
    Address,
    Delete,
    Duplicate,
    Event,
    Forward,
    Gone,
    Message,
    Reachable,
    TimedOut,
)
from controller.protocol.world import Action, Scenario, Vanish, beginning, perform

COLUMN_CHARACTERS = 9
COLUMN_PX, ROW_PX, TOP_PX, TEXT_PX = 110, 26, 40, 430


class Row(NamedTuple):
    agent: Address
    sender: Address | None
    sent_at: int | None  # the row in which a message was sent
    text: str


def rows_of(scenario: Scenario, actions: Sequence[Action]) -> list[Row]:
    """Each action with its words; a message knows the row that sent it."""
    world = beginning(scenario)
    sent_at: dict[Message, list[int]] = {}
    rows = []
    for number, action in enumerate(actions, start=1):
        before = {pair: len(channel) for pair, channel in world.channels.items()}
        message = action.event if isinstance(action.event, Message) else None
        sender = message.sender if message else None
        came_from = sent_at[message].pop(0) if message else None
        rows.append(Row(action.agent, sender, came_from, described(action.event)))
        if message:
            before[message.sender, message.receiver] -= 1
        world, _ = perform(world, action, scenario)
        for pair, channel in world.channels.items():
            for new in channel[before.get(pair, 0) :]:
                sent_at.setdefault(new, []).append(number)
    return rows


def described(event: Event | Vanish) -> str:
    if isinstance(event, Message):
        return _message(event)
    if isinstance(event, Duplicate):
        return f"duplicates: {_listed(event.children)}"
    if isinstance(event, Forward):
        return f"sends a record to {event.to}" if event.to else "processes the record"
    if isinstance(event, Gone | TimedOut):
        return f"gives {event.peer} up"
    if isinstance(event, Reachable):
        return f"can reach {event.peer} again"
    return "decides to leave" if isinstance(event, Delete) else "vanishes"


def _message(message: Message) -> str:
    if message.kind in (DUPLICATION, DELETION):
        return f"{message.kind} of {_listed(message.addresses)}"
    if message.kind == START:
        return f"start with {_listed(message.preds)} before and {_listed(message.succs)} after it"
    return f"record {message.number}" if message.kind == RECORD else message.kind


def _listed(addresses: frozenset[Address] | tuple[Address, ...]) -> str:
    return " ".join(map(str, sorted(addresses))) or "nobody"


def _columns(rows: Sequence[Row]) -> list[Address]:
    return sorted({row.agent for row in rows} | {row.sender for row in rows if row.sender})


def as_text(scenario: Scenario, actions: Sequence[Action], problems: Sequence[str]) -> str:
    rows = rows_of(scenario, actions)
    columns = _columns(rows)
    lines = [f"{scenario.name}: instances {'-'.join(map(str, scenario.instances))}"]
    lines.append("     " + "".join(str(a).center(COLUMN_CHARACTERS) for a in columns))
    for number, row in enumerate(rows, start=1):
        sent = f" (sent in {row.sent_at})" if row.sent_at is not None else ""
        lines.append(f"{number:>4} {_drawn(row, columns)}  {row.text}{sent}")
    return "\n".join([*lines, *(f"  => {problem}" for problem in problems)])


def _drawn(row: Row, columns: list[Address]) -> str:
    """The lifelines of one row, with a dot for an event of one's own or an arrow for a message."""
    middle = COLUMN_CHARACTERS // 2
    cells = list(("│".center(COLUMN_CHARACTERS)) * len(columns))
    at = columns.index(row.agent) * COLUMN_CHARACTERS + middle
    if row.sender is None:
        cells[at] = "●"
        return "".join(cells)
    start = columns.index(row.sender) * COLUMN_CHARACTERS + middle
    step = 1 if at > start else -1
    for place in range(start + step, at, step):
        cells[place] = "┼" if cells[place] == "│" else "─"
    cells[start], cells[at] = "├" if step > 0 else "┤", "▶" if step > 0 else "◀"
    return "".join(cells)


def as_svg(scenario: Scenario, actions: Sequence[Action], problems: Sequence[str]) -> str:
    """Arrows lean from the row that sent a message to the row that took it, so overtaking is seen."""
    rows = rows_of(scenario, actions)
    columns = _columns(rows)
    x = {address: 60 + i * COLUMN_PX for i, address in enumerate(columns)}
    right = 60 + len(columns) * COLUMN_PX
    bottom = TOP_PX + (len(rows) + 1) * ROW_PX
    height = bottom + (len(problems) + 1) * ROW_PX
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {right + TEXT_PX} {height}"',
        ' font-family="sans-serif" font-size="12"><title>' + escape(scenario.name) + "</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7"'
        ' orient="auto"><path d="M0 0L8 4L0 8z" fill="#1b6ca8"/></marker></defs>',
    ]
    for address in columns:
        parts.append(f'<text x="{x[address]}" y="20" text-anchor="middle">{escape(str(address))}</text>')
        parts.append(f'<path d="M{x[address]} {TOP_PX - 12}V{bottom}" stroke="#999"/>')
    for number, row in enumerate(rows, start=1):
        parts += _svg_row(row, number, x, right)
    for i, problem in enumerate(problems, start=1):
        parts.append(f'<text x="20" y="{bottom + i * ROW_PX}" fill="#b3261e">{escape(problem)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _svg_row(row: Row, number: int, x: dict[Address, int], right: int) -> list[str]:
    y = TOP_PX + number * ROW_PX
    text = f'<text x="{right}" y="{y + 4}">{number}. {escape(str(row.agent))}: {escape(row.text)}</text>'
    if row.sender is None or row.sent_at is None:
        return [f'<circle cx="{x[row.agent]}" cy="{y}" r="4" fill="#444"/>', text]
    y_sent = TOP_PX + row.sent_at * ROW_PX
    way = f"M{x[row.sender]} {y_sent}L{x[row.agent]} {y}"
    return [f'<path d="{way}" stroke="#1b6ca8" fill="none" marker-end="url(#tip)"/>', text]
