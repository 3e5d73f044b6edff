"""TaskManagers per sample: what the published numbers can tell.

Worked out from the text alone. Samples of the four minutes after a rescaling are discarded, so a mean "per
sample" is one over the others.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from paper_figures.published import load as load_published
from paper_figures.thesis.arithmetic import (
    BELL_RESCALINGS,
    BELL_S,
    WORLDCUP_COUNTS,
    WORLDCUP_RESCALINGS,
    WORLDCUP_S,
    discarded_samples,
    judged_samples,
    polls,
    taskmanagers_per_sample,
)


def load(_tables: Path) -> pd.DataFrame:
    tables = load_published(Path(__file__).parent).tables
    bell = {policy: row["mean_instances"] for policy, row in tables["optimal_control"].items()}
    judged = judged_samples(BELL_S, BELL_RESCALINGS)
    apart = bell["reactive"] - bell["proactive"]
    window = discarded_samples()
    rows = [
        (
            "§5.3, samples that are judged",
            f"{polls(BELL_S)} − {BELL_RESCALINGS} · {window} = {judged}",
            "Polls every 5 s, less those of four minutes after each of four rescalings",
        ),
        (
            f"§5.3, {bell['reactive']:g} and {bell['proactive']:g} apart",
            f"{apart:.2f} · {judged} = {apart * judged:.0f} samples",
            f"Less than the {window} that one rescaling discards: where they fall may decide the order",
        ),
        *_worldcup(),
    ]
    return pd.DataFrame(rows, columns=["What", "Found", "So"])


def _worldcup() -> list[tuple[str, str, str]]:
    samples = judged_samples(WORLDCUP_S, len(WORLDCUP_COUNTS) - 1)
    return [
        (
            f"§5.4, {policy}, rescaled near samples {', '.join(str(change) for change in changes)}",
            f"{taskmanagers_per_sample(WORLDCUP_COUNTS, changes, samples):.3f} per sample of {samples}",
            "The same for both, whatever the number of samples: the published order says nothing",
        )
        for policy, changes in WORLDCUP_RESCALINGS.items()
    ]
