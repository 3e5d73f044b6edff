"""What every command prints with: results to standard output, progress to standard error and only there if
it is a terminal."""

from __future__ import annotations

import json
import logging
import re
import socketserver
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TextIO

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column
from rich.text import Text

from fogscale.errors import FogscaleError, Interrupted, printable
from fogscale.signals import ignore_endings, on_ending

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class PlainConsole(Console):
    """Without markup: what users call their files and nodes is printed as it is, brackets and all. What a
    terminal would obey (a journal's reason may hold it) is printed as its code."""

    def print(self, *objects: Any, **settings: Any) -> None:
        super().print(*map(_harmless, objects), **settings)


def _harmless(shown: Any) -> Any:
    if isinstance(shown, str):
        return printable(shown, kept="\n\t")
    if isinstance(shown, Text) and "\x1b" in shown.plain:
        return Text(printable(shown.plain, kept="\n\t"), style=shown.style)
    return shown


out = PlainConsole(markup=False)
err = PlainConsole(stderr=True, markup=False)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Results = Annotated[Path, typer.Option("--out", help="Folder that holds the results.")]


ONE_INTERRUPTION_S = 1.0
_came_s: list[float] = []  # when each came
_then = ["what was recorded is kept: run the same command again to go on"]


def interrupted(_signal: int, _frame: FrameType | None) -> None:
    """Several at once are one: a terminal that goes tells its shell, which tells us again. What ends in order
    must not be cut off by that."""
    now_s = time.monotonic()
    if not _came_s or now_s - _came_s[-1] > ONE_INTERRUPTION_S:
        _came_s.append(now_s)
        raise _interruption()


def _interruption() -> Interrupted:
    return Interrupted(f"interrupted; {_then[-1]}")


_documents: list[int] = []  # one for each that was printed
_documents_to: list[TextIO] = []  # where they go, if not to what is standard output now


def has_printed_json() -> bool:
    return bool(_documents)


def print_nothing_but_json() -> None:
    """From now on: what a plug-in prints, at import or when it decides, goes to standard error."""
    _documents_to.append(sys.stdout)
    sys.stdout = sys.stderr


def print_json(document: Any) -> None:
    """One document, as every JSON parser takes it: what is no finite number is null."""
    _documents.append(1)
    stream = _documents_to[-1] if _documents_to else sys.stdout
    print(json.dumps(_finite(document), allow_nan=False, default=str), file=stream, flush=True)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(below) for key, below in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(below) for below in value]
    return value


@contextmanager
def if_interrupted(then: str) -> Iterator[None]:
    """What is true where Ctrl-C ends this block; elsewhere it is what holds for runs."""
    _then.append(then)
    try:
        yield
    finally:
        _then.pop()


@contextmanager
def spark_session(doing: str) -> Iterator[SparkSession]:
    """A session for one command. What it needs is imported after it: the JVM starts meanwhile."""
    from analysis.spark import end_at_once, session

    if err.is_terminal:
        err.print(doing, highlight=False, style="dim")
    _mute_the_bridge()
    spark = None
    try:
        spark = session()
        # Spark has a handler of its own now, which cancels all jobs: what fails of that is no error.
        on_ending(interrupted)
        yield spark
    except (KeyboardInterrupt, Interrupted):  # the former by Spark, while it starts
        ignore_endings()
        spark = None
        # Spark's servers in this process would print tracebacks when the JVM leaves them.
        socketserver.BaseServer.handle_error = lambda *_: None  # type: ignore[method-assign]
        end_at_once()
        raise _interruption() from None
    except Exception as error:
        if (reason := reason_outside(error)) is None:
            raise
        raise FogscaleError(
            f"{reason}: see that the disk has room, that no file is damaged and that all workers of Spark"
            " reach them; then run the same command again"
        ) from error
    finally:
        ignore_endings()  # or a JVM that is half stopped would stay
        if spark is not None:
            spark.stop()
        on_ending(interrupted)


# As a task's traceback ends; a fault of ours keeps all of it.
_OUTSIDE = re.compile(
    r"^(?:Caused by: )?(?:java\.io\.\w+|OSError|FileNotFoundError|PermissionError|NotADirectoryError): (.+)$",
    re.MULTILINE,
)


def reason_outside(error: Exception) -> str | None:
    """What files and disks had against it, here or in a task; None where that was not the reason."""
    if isinstance(error, OSError):
        return str(error)
    found = _OUTSIDE.search(str(error))
    return found[1].strip() if found else None


def _mute_the_bridge() -> None:
    """It logs an interrupt and what comes of it with tracebacks, in part not even to its own logger."""
    logging.getLogger("py4j").propagate = False
    logging.getLogger().addFilter(lambda record: Path(record.pathname).parent.name != "py4j")


class Told(Protocol):
    def __call__(self, done: float, /, status: str = "") -> None: ...


@contextmanager
def progress_bar(label: str, total: float) -> Iterator[Told | None]:
    """A bar on a terminal, nothing elsewhere. How things stand, where it is told, takes the label's place;
    the bar has what is left of the line."""
    if not err.is_terminal:
        yield None
        return
    text = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True))
    columns = (text, BarColumn(bar_width=None), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, expand=True) as bar:
        task = bar.add_task(label, total=total)

        def tell(done: float, status: str = "") -> None:
            bar.update(task, completed=min(done, total), description=status or label)

        yield tell
