"""A learning Ethernet switch in user space that delays frames per pair of ports, for kernels without netem.

It runs inside the namespace that holds the nodes' cables, and answers on a Unix socket: a JSON object
`{"rtt_ms": [[0, 50], [50, 0]]}` sets the round trips in the order of the ports, `{}` only asks; the answer is
`{"rtt_ms": ..., "forwarded": n, "dropped": n, "late_max_ms": x}`.
"""

from __future__ import annotations

import argparse
import gc
import heapq
import json
import os
import select
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

# From linux/if_packet.h and asm-generic/socket.h; Python's socket module does not name them.
SOL_PACKET, PACKET_VNET_HDR, PACKET_QDISC_BYPASS, PACKET_IGNORE_OUTGOING = 263, 15, 20, 23
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33
ETH_P_ALL = 3

# Frames cross with the kernel's virtio header: segmentation and checksums stay postponed, so a burst of 64
# KB of TCP costs one read and one write.
HEADER_BYTES = 10
LARGEST_BYTES = 65536 + 64
SOCKET_BUFFER_BYTES = 64 << 20
MOST_HELD_BYTES = 512 << 20
BURST_FRAMES = 32
REAL_TIME_PRIORITY = 10


class DelayLine:
    """Frames that wait for their time. Frames of one pair never overtake each other, not even when its delay
    shrinks meanwhile: TCP would take that for loss."""

    def __init__(self, rtt_ms: Sequence[Sequence[float]]) -> None:
        self.held_bytes = 0
        self._waiting: list[tuple[int, int, int, bytes]] = []  # due, order of arrival, target, frame
        self._arrivals = 0
        self._last_due_ns: dict[tuple[int, int], int] = {}
        self.set(rtt_ms)

    def set(self, rtt_ms: Sequence[Sequence[float]]) -> None:
        self.rtt_ms = [[float(value) for value in row] for row in rtt_ms]
        self._one_way_ns = [[int(value / 2 * 1e6) for value in row] for row in self.rtt_ms]

    def hold(self, frame: bytes, source: int, target: int, now_ns: int) -> bool:
        """False where there is no room left: the frame is lost, as in a full queue."""
        if self.held_bytes + len(frame) > MOST_HELD_BYTES:
            return False
        pair = (source, target)
        due_ns = max(now_ns + self._one_way_ns[source][target], self._last_due_ns.get(pair, 0))
        self._last_due_ns[pair] = due_ns
        self._arrivals += 1
        self.held_bytes += len(frame)
        heapq.heappush(self._waiting, (due_ns, self._arrivals, target, frame))
        return True

    @property
    def next_due_ns(self) -> int | None:
        return self._waiting[0][0] if self._waiting else None

    def release(self) -> tuple[int, int, bytes]:
        """The frame that is due first: when, to which port, and the frame."""
        due_ns, _, target, frame = heapq.heappop(self._waiting)
        self.held_bytes -= len(frame)
        return due_ns, target, frame


class Switch:
    def __init__(
        self, interfaces: Sequence[str], control_path: str, rtt_ms: Sequence[Sequence[float]]
    ) -> None:
        self.ports = [_open_port(interface) for interface in interfaces]
        self.line = DelayLine(rtt_ms)
        self.forwarded = self.dropped = self.late_max_ns = 0
        self._port_of_mac: dict[bytes, int] = {}
        self._control = _listen(control_path)

    def run(self) -> None:
        index = {port: number for number, port in enumerate(self.ports)}
        readable_first: list[socket.socket] = [*self.ports, self._control]
        while True:
            due_ns = self.line.next_due_ns
            wait_s = None if due_ns is None else max(0, due_ns - time.monotonic_ns()) / 1e9
            readable, _, _ = select.select(readable_first, [], [], wait_s)
            self._release_due()
            for each in readable:
                if each is self._control:
                    self._answer()
                else:
                    self._receive(index[each])

    def _release_due(self) -> None:
        now_ns = time.monotonic_ns()
        for _ in range(2 * BURST_FRAMES):  # then look at the ports again, or their buffers would overflow
            due_ns = self.line.next_due_ns
            if due_ns is None or due_ns > now_ns:
                return
            due_ns, target, frame = self.line.release()
            self.late_max_ns = max(self.late_max_ns, now_ns - due_ns)
            try:
                self.ports[target].send(frame)
                self.forwarded += 1
            except OSError:  # the cable is down, or its queue is full
                self.dropped += 1

    def _receive(self, source: int) -> None:
        port = self.ports[source]
        for _ in range(BURST_FRAMES):
            try:
                frame = port.recv(LARGEST_BYTES)
            except OSError:
                return
            target_mac = frame[HEADER_BYTES : HEADER_BYTES + 6]
            self._port_of_mac[frame[HEADER_BYTES + 6 : HEADER_BYTES + 12]] = source
            known = self._port_of_mac.get(target_mac)
            to_all = known is None or target_mac[0] & 1  # unknown, or a group address
            targets = range(len(self.ports)) if to_all else (known,)
            now_ns = time.monotonic_ns()
            for target in targets:
                if (
                    target is not None
                    and target != source
                    and not self.line.hold(frame, source, target, now_ns)
                ):
                    self.dropped += 1

    def _answer(self) -> None:
        """One request, one answer. A client that dawdles must not hold up the frames."""
        with suppress(OSError, ValueError):
            client, _ = self._control.accept()
            with client:
                client.settimeout(0.05)
                request = json.loads(client.recv(1 << 20))
                if "rtt_ms" in request:
                    self.line.set(checked(request["rtt_ms"], len(self.ports)))
                answer = {
                    "rtt_ms": self.line.rtt_ms,
                    "forwarded": self.forwarded,
                    "dropped": self.dropped,
                    "late_max_ms": self.late_max_ns / 1e6,
                }
                client.sendall(json.dumps(answer).encode())


def checked(rtt_ms: Any, ports: int) -> list[list[float]]:
    """The matrix itself was judged long before; this only keeps a wrong size from stopping the switch."""
    rows = [[max(0.0, float(value)) for value in row] for row in rtt_ms]
    if len(rows) != ports or any(len(row) != ports for row in rows):
        raise ValueError(f"{ports} ports need {ports} rows of as many")
    return rows


def remembered(file: Path | None, names: Sequence[str]) -> list[list[float]]:
    """The round trips that were last set, as far as they concern these ports; none for others."""
    rows: dict[str, dict[str, float]] = {}
    if file is not None:
        with suppress(FileNotFoundError, ValueError):
            rows = json.loads(file.read_text())
    return [[float(rows.get(a, {}).get(b, 0.0)) for b in names] for a in names]


def _open_port(interface: str) -> socket.socket:
    port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    for option in (PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING, PACKET_QDISC_BYPASS):
        port.setsockopt(SOL_PACKET, option, 1)
    for option in (SO_SNDBUFFORCE, SO_RCVBUFFORCE):
        port.setsockopt(socket.SOL_SOCKET, option, SOCKET_BUFFER_BYTES)
    port.bind((interface, ETH_P_ALL))
    port.setblocking(False)
    return port


def _listen(path: str) -> socket.socket:
    with suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108 (the path may be a /proc/self/fd one)
    control = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    control.bind(path)
    os.chmod(path, 0o600)  # noqa: PTH101
    control.listen(8)
    control.setblocking(False)
    return control


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--control", required=True, help="path of the Unix socket to answer on")
    parser.add_argument("--remember", type=Path, help="file of round trips by name, to start with")
    parser.add_argument("--names", default="", help="the ports' names in that file, separated by commas")
    parser.add_argument("interfaces", nargs="+", help="one end of every cable, in this namespace")
    arguments = parser.parse_args()
    try:
        # Frames leave on time only if nothing else on the machine comes first.
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(REAL_TIME_PRIORITY))
    except OSError as error:
        print(f"no real-time priority, round trips will be less exact: {error}", file=sys.stderr)
    gc.disable()  # nothing here makes cycles, and a collection delays frames
    names = arguments.names.split(",") if arguments.names else arguments.interfaces
    switch = Switch(arguments.interfaces, arguments.control, remembered(arguments.remember, names))
    print(f"ready with {len(names)} ports", flush=True)
    switch.run()


if __name__ == "__main__":
    main()
