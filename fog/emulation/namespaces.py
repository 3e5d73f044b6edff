"""Linux namespaces, as far as Python 3.11 does not offer them itself."""

from __future__ import annotations

import ctypes
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    _check(_libc.unshare(flags))


def set_namespace(path: Path) -> None:
    """Moves the calling thread."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _check(_libc.setns(descriptor, 0))
    finally:
        os.close(descriptor)


@contextmanager
def entered(network: Path | None) -> Iterator[None]:
    """The calling thread, and all threads and programs that it starts meanwhile, are in that network
    namespace. None: nothing changes, the network is this machine's own."""
    if network is None:
        yield
        return
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        set_namespace(network)
        try:
            yield
        finally:
            _check(_libc.setns(home, 0))
    finally:
        os.close(home)


def connect(network: Path, address: str, port: int, timeout_s: float = 10.0) -> socket.socket:
    """A TCP connection made inside another network namespace. A socket keeps the namespace it was made in, so
    only a short-lived thread moves there."""
    outcome: list[socket.socket | OSError] = []

    def work() -> None:
        try:
            set_namespace(network)
            outcome.append(socket.create_connection((address, port), timeout_s))
        except OSError as error:
            outcome.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if isinstance(outcome[0], OSError):
        raise outcome[0]
    return outcome[0]


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
