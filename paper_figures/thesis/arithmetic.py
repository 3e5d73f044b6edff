"""What the thesis' own numbers say about "TaskManagers per sample": no run of ours is in any of these."""

from __future__ import annotations

from collections.abc import Sequence

SAMPLE_S = 5.0  # §5.3, §5.4
DISCARDED_S = 240.0  # after each rescaling, §4.3.3

# §5.3: an hour and a half under a bell that needs one, two, three, two and one TaskManager.
BELL_S, BELL_RESCALINGS = 5400.0, 4
# §5.4: three hours, one TaskManager first, then two, one, two; near which samples, by the text and Figure 35.
WORLDCUP_S = 10800.0
WORLDCUP_COUNTS = (1, 2, 1, 2)
WORLDCUP_RESCALINGS = {"reactive": (100, 1000, 1800), "proactive": (100, 900, 1700)}


def polls(span_s: float) -> int:
    return round(span_s / SAMPLE_S)


def discarded_samples(rescalings: int = 1) -> int:
    return rescalings * round(DISCARDED_S / SAMPLE_S)


def judged_samples(span_s: float, rescalings: int) -> int:
    return polls(span_s) - discarded_samples(rescalings)


def taskmanagers_per_sample(counts: Sequence[int], changes: Sequence[int], samples: int) -> float:
    """The mean over so many samples if the counts follow each other at these samples."""
    ends = (*changes, samples)
    begins = (0, *changes)
    held = [end - begin for begin, end in zip(begins, ends, strict=True)]
    return sum(count * length for count, length in zip(counts, held, strict=True)) / samples
