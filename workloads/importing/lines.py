"""Text files as lines: each with its place in the file, whatever state the file is in.

Tasks read some megabytes at a time and find the line ends in them; no single line is touched. Spark's own
reader cannot tell where a line stood and gives up on a whole gzip that was cut off.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from workloads.importing.streams import CHUNK_BYTES, Part, gunzipped

PART_BYTES = 32 << 20
SAMPLE_CHUNK_BYTES = 1 << 16
MARK = b"\xef\xbb\xbf"  # of byte order, which some editors put at the start of a file
LONGEST_LINE_BYTES = CHUNK_BYTES  # what has no end for so long is no text: it is quarantined in pieces


class Lines(NamedTuple):
    """Neighbouring lines of a file. `damage` says what cut the only one of them off."""

    position: int  # of the first of them, in bytes (after gunzip)
    content: bytes
    ends: npt.NDArray[np.int64]  # where each line ends in the content, its line end included
    damage: str | None = None

    @property
    def starts(self) -> npt.NDArray[np.int64]:
        starts = np.zeros_like(self.ends)
        starts[1:] = self.ends[:-1]
        return starts

    @property
    def positions(self) -> npt.NDArray[np.int64]:
        return self.starts + self.position

    def texts(self, numbers: Iterable[int]) -> list[str]:
        """These lines without their line ends; bytes that are no UTF-8 stay readable."""
        ends = self.ends
        pieces = (self.content[ends[number - 1] if number else 0 : ends[number]] for number in numbers)
        return [piece.decode("utf-8", "backslashreplace").rstrip("\r\n") for piece in pieces]

    def without_first(self) -> Lines:
        cut = int(self.ends[0])
        return self._replace(
            position=self.position + cut, content=self.content[cut:], ends=self.ends[1:] - cut
        )

    def without_mark(self) -> Lines:
        if self.position or not self.content.startswith(MARK):
            return self
        cut = len(MARK)
        return self._replace(position=cut, content=self.content[cut:], ends=self.ends - cut)

    @property
    def begin_the_file(self) -> bool:
        return self.position in (0, len(MARK)) and self.damage is None


def line_batches(part: Part, sample_every: int = 1) -> Iterator[Lines]:
    """All lines of a part; with `sample_every` above 1, those of one chunk in so many."""
    if part.is_gzip:
        found = _gzip_batches(part, sample_every)
    else:
        found = _plain_batches(part) if sample_every == 1 else _plain_sample(part, sample_every)
    return (lines.without_mark() for lines in found)


def _plain_batches(part: Part, chunk_bytes: int = CHUNK_BYTES, is_sample: bool = False) -> Iterator[Lines]:
    """The lines that begin within the part; the last of them may end beyond it."""
    with Path(part.path).open("rb") as file:
        position = 0
        if part.start > 0:  # the line that runs into this part belongs to the one before
            file.seek(part.start - 1)
            position = part.start - 1 + len(file.readline(LONGEST_LINE_BYTES))
        while position < part.end:
            file.seek(position)
            if not (content := file.read(chunk_bytes)):
                return
            ends = _line_ends(content, is_last=is_sample or len(content) < chunk_bytes)
            ends = ends[: np.searchsorted(ends, part.end - position) + 1]
            yield Lines(position, content[: ends[-1]], ends)
            position += int(ends[-1])


def _plain_sample(part: Part, sample_every: int) -> Iterator[Lines]:
    for start in range(part.start, part.end, SAMPLE_CHUNK_BYTES * sample_every):
        end = min(start + SAMPLE_CHUNK_BYTES, part.end)
        # Read a little further for the last line; where even that is not enough, it is malformed anyway.
        yield from _plain_batches(part._replace(start=start, end=end), 2 * SAMPLE_CHUNK_BYTES, is_sample=True)


def _gzip_batches(part: Part, sample_every: int) -> Iterator[Lines]:
    position, rest = 0, b""
    for number, (content, damage) in enumerate(gunzipped(part.path)):
        content = rest + content
        ends = _line_ends(content, is_last=False)
        if len(ends):
            if number % sample_every == 0:
                yield Lines(position, content[: ends[-1]], ends)
            position += int(ends[-1])
            content = content[ends[-1] :]
        rest = content
        if damage is not None:
            yield Lines(position, rest, np.array([len(rest)]), damage)
            position, rest = position + len(rest), b""
    if rest:
        yield Lines(position, rest, np.array([len(rest)]))


def _line_ends(content: bytes, is_last: bool) -> npt.NDArray[np.int64]:
    """Where the lines of this content end, their line end included."""
    ends = np.flatnonzero(np.frombuffer(content, np.uint8) == ord("\n")) + 1
    done = int(ends[-1]) if len(ends) else 0
    if done < len(content) and (is_last or len(content) - done >= LONGEST_LINE_BYTES):
        ends = np.append(ends, len(content))
    return ends


def lines_at(part: Part, positions: npt.NDArray[np.int64]) -> Iterator[str]:
    """The lines that begin at these positions of a part, in their order in the file."""
    if part.is_gzip:
        for lines in line_batches(part):
            if lines.damage is None:  # else its place may be that of the line after it
                yield from lines.texts(np.flatnonzero(np.isin(lines.positions, positions)))
        return
    with Path(part.path).open("rb") as file:
        for position in np.sort(positions).tolist():
            file.seek(position)
            content = file.readline(LONGEST_LINE_BYTES)
            yield from Lines(position, content, np.array([len(content)])).texts([0])
