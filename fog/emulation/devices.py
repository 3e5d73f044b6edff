"""Which devices the processes of a cgroup of version 2 may open: a program that the kernel asks.

The list is that of version 1, in its words: kind, numbers and what is allowed, as in `c 1:3 rwm`.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Iterable
from pathlib import Path

from fogscale.errors import FogscaleError

_SYSCALL = {"x86_64": 321, "aarch64": 280}
_PROG_LOAD, _PROG_ATTACH = 5, 8
_TYPE_CGROUP_DEVICE, _ATTACH_DEVICE = 15, 6
_ALLOW_MULTI = 2  # containers in a node bring programs of their own; a device opens where all agree
_KINDS = {"b": 1, "c": 2}
_ACCESS = {"m": 1, "r": 2, "w": 4}
# What is asked: (access << 16 | kind), major and minor, each of 32 bits, at the address in register 1.
_ANSWER, _GIVEN, _KIND, _WANTED, _MAJOR, _MINOR = 0, 1, 2, 3, 4, 5  # registers
_LOAD, _MOVE, _SET, _AND, _SHIFT, _UNLESS, _EXIT = 0x61, 0xBF, 0xB7, 0x57, 0x77, 0x55, 0x95


def program(allowed: Iterable[str]) -> bytes:
    """Answers 1 to what one of these lines allows, else 0."""
    found = [
        _step(_LOAD, _KIND, _GIVEN, at=0),
        _step(_LOAD, _MAJOR, _GIVEN, at=4),
        _step(_LOAD, _MINOR, _GIVEN, at=8),
        _step(_MOVE, _WANTED, _KIND),
        _step(_SHIFT, _WANTED, value=16),
        _step(_AND, _KIND, value=0xFFFF),
    ]
    for line in allowed:
        found += _rule(*line.split())
    return b"".join([*found, _step(_SET, _ANSWER, value=0), _step(_EXIT)])


def _rule(kind: str, numbers: str, access: str) -> list[bytes]:
    """Each condition that does not hold jumps behind the rule."""
    major, minor = numbers.split(":")
    equal = [(_KIND, _KINDS[kind])]
    equal += [(place, int(text)) for place, text in ((_MAJOR, major), (_MINOR, minor)) if text != "*"]
    left = 2 + 3 + len(equal)  # to answer and exit, to look at the access, and the rest
    steps = []
    for number, (place, value) in enumerate(equal, start=1):
        steps.append(_step(_UNLESS, place, at=left - number, value=value))
    beyond = 7 & ~sum(_ACCESS[each] for each in access)
    steps += [
        _step(_MOVE, _ANSWER, _WANTED),
        _step(_AND, _ANSWER, value=beyond),
        _step(_UNLESS, _ANSWER, at=2),
    ]
    return [*steps, _step(_SET, _ANSWER, value=1), _step(_EXIT)]


def _step(code: int, to: int = 0, of: int = 0, at: int = 0, value: int = 0) -> bytes:
    return struct.pack("<BBhi", code, of << 4 | to, at, value)


def allow_only(group: Path, allowed: Iterable[str]) -> None:
    """For all that is in the cgroup or below it, until it is removed."""
    code, license_text = ctypes.create_string_buffer(program(allowed)), ctypes.create_string_buffer(b"GPL")
    steps = (len(code) - 1) // 8
    loaded = struct.pack(
        "<IIQQ", _TYPE_CGROUP_DEVICE, steps, ctypes.addressof(code), ctypes.addressof(license_text)
    )
    folder = os.open(group, os.O_RDONLY | os.O_DIRECTORY)
    try:
        descriptor = _bpf(_PROG_LOAD, loaded)
        try:
            _bpf(_PROG_ATTACH, struct.pack("<IIII", folder, descriptor, _ATTACH_DEVICE, _ALLOW_MULTI))
        finally:
            os.close(descriptor)  # the cgroup keeps the program
    except OSError as error:
        raise FogscaleError(
            f"the kernel takes no list of devices for {group} ({error.strerror}): emulated nodes could open"
            " the machine's disks; use a kernel with CONFIG_CGROUP_BPF"
        ) from error
    finally:
        os.close(folder)


def _bpf(command: int, attributes: bytes) -> int:
    number = _SYSCALL.get(platform.machine())
    if number is None:
        raise OSError(0, f"unknown architecture {platform.machine()}", None)
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(attributes.ljust(128, b"\0"), 128)
    answer: int = libc.syscall(
        ctypes.c_long(number), ctypes.c_long(command), ctypes.byref(buffer), ctypes.c_long(128)
    )
    if answer < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return answer
