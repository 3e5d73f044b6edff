"""Files at the border: written whole or not at all, read up to a size, and never waited for without end."""

from __future__ import annotations

import errno
import fcntl
import os
import select
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import BinaryIO

from fogscale.errors import FogscaleError

LARGEST_DOCUMENT_BYTES = 16 << 20
"""Of a file that people write: experiments, settings, manifests. Traces and journals may be larger."""
_PATIENCE_S = 10.0  # for whoever writes into a pipe to begin


def users_folder(variable: str, below_home: str) -> Path | None:
    """As the XDG base directories say; None where nobody says which folder is this user's home."""
    if given := os.environ.get(variable):
        return Path(given).absolute()
    try:
        return Path.home().absolute() / below_home
    except RuntimeError:  # no HOME, and no entry in passwd, as in some containers
        return None


def write_whole(path: Path, content: str | bytes, advice: str = "choose another folder with --out") -> None:
    """Under another name first, and on the disk before it gets its own: what has the name is whole."""
    data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    # A name may have 255 bytes, and each of its characters four.
    unfinished = path.with_name(f".{path.name[:50]}.{os.getpid()}.unfinished")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():  # a device or a pipe: there is nothing to be kept whole
            with os.fdopen(_opened_for_a_reader(path), "wb") as file:
                file.write(data)
            return
        try:
            unfinished.unlink(missing_ok=True)
            with unfinished.open("xb") as file:  # never through a link that somebody has put there
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
    except OSError as error:
        # A file where a folder should be is "File exists" to mkdir, as if the path itself were there already.
        why = os.strerror(errno.ENOTDIR) if isinstance(error, FileExistsError) else error.strerror
        raise FogscaleError(f"cannot write {path}: {why}; {advice}") from error


def _opened_for_a_reader(path: Path) -> int:
    """Of a pipe, one should be there or come soon; it is not waited for without end."""
    deadline_s = time.monotonic() + _PATIENCE_S
    while True:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno != errno.ENXIO or not path.is_fifo() or time.monotonic() > deadline_s:
                raise
            time.sleep(0.05)
        else:
            os.set_blocking(descriptor, True)
            return descriptor


def opened_lock(path: Path) -> FileIO:
    """Made where it is missing; never what a link leads to, and no pipe is waited for."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    return FileIO(os.open(path, flags, 0o666), "r+")


@contextmanager
def alone(folder: Path, doing: str) -> Iterator[None]:
    """While the block runs, no other fogscale does the same in this folder."""
    try:
        lock = opened_lock(folder / f".{doing}.lock")
    except OSError as error:
        raise FogscaleError(
            f"cannot write into {folder}: {error.strerror}; copy it to where you may"
        ) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # let go when the process ends, however it does
        except OSError as error:
            raise FogscaleError(f"{folder} is in use by another fogscale ({doing}): wait for it") from error
        yield


def opened(path: Path) -> BinaryIO:
    """To read a file of any size: no pipe, into which nobody may write, and no device that never ends.
    Raises OSError as opening does."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    kind = os.fstat(descriptor).st_mode
    if stat.S_ISREG(kind):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise FogscaleError(f"{path} is no file: write what it gives into one, and name that")


def read_document(path: Path, most_bytes: int = LARGEST_DOCUMENT_BYTES) -> str:
    """The text of a file that people write. Raises OSError and UnicodeDecodeError as reading does."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            waiting = select.poll()
            waiting.register(descriptor, select.POLLIN)
            if not waiting.poll(_PATIENCE_S * 1000):
                raise FogscaleError(f"{path} is a pipe into which nobody writes: name a file")
            os.set_blocking(descriptor, True)
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise FogscaleError(f"{path} is larger than {most_bytes >> 20} MiB: name another file")
    return content.decode("utf-8")
