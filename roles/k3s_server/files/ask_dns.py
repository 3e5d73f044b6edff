"""`ask_dns.py SERVER NAME` prints the addresses that a DNS server has for a name."""

from __future__ import annotations

import socket
import struct
import sys

ADDRESS, INTERNET = 1, 1
TRIES, PATIENCE_S = 3, 5.0


def question(name: str) -> bytes:
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.rstrip(".").split("."))
    return struct.pack(">6H", 1, 0x0100, 1, 0, 0, 0) + labels + struct.pack(">BHH", 0, ADDRESS, INTERNET)


def addresses(answer: bytes, asked: bytes) -> list[str]:
    """Of the records behind the question, which the answer repeats."""
    count, place, found = struct.unpack_from(">H", answer, 6)[0], len(asked), []
    for _ in range(count):
        while answer[place] and answer[place] < 0xC0:  # a name, unless two bytes point to where it stands
            place += 1 + answer[place]
        place += 2 if answer[place] else 1
        kind, _, _, size = struct.unpack_from(">HHIH", answer, place)
        place += 10
        if kind == ADDRESS:
            found.append(socket.inet_ntoa(answer[place : place + size]))
        place += size
    return found


def ask(server: str, name: str, port: int = 53) -> list[str]:
    asked = question(name)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
        way.settimeout(PATIENCE_S)
        way.connect((server, port))
        for _ in range(TRIES):
            try:
                way.send(asked)
                return addresses(way.recv(4096), asked)
            except OSError:  # lost, or nobody there yet
                continue
    return []


if __name__ == "__main__":
    print(*ask(sys.argv[1], sys.argv[2]))
