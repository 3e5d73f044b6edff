"""The header by which a reader can audit loss, duplicates and order: `fogscale: <run>:<number>`, as text.

Numbers run from 0 over a run, copies counted one by one: copy c of record n is n · copies + c. The key and
the value of a message stay the record's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

NAME = "fogscale"

Headers = list[tuple[str, str | bytes | None]]  # as confluent-kafka declares them


def headers_of(run: str, numbers: Iterable[int]) -> list[Headers]:
    template = run.encode().replace(b"%", b"%%") + b":%d"
    return [[(NAME, template % number)] for number in numbers]


def read(headers: Sequence[tuple[str, bytes | None]] | None) -> tuple[str, int] | None:
    """Run and number of a message, None if it was not sent by a producer of fogscale."""
    for name, value in headers or ():
        if name == NAME and value is not None:
            run, _, number = value.partition(b":")
            if number.isdigit():
                return run.decode(errors="replace"), int(number)
    return None
