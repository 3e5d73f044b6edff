"""The words in which comparisons are judged; apart from the statistics, which take long to import."""

from typing import Literal

Verdict = Literal["agree", "disagree", "not_significant"]
Test = Literal["paired", "welch"]
