"""Tries a Kafka without valid credentials, by its own protocol: `python3 - URL…` on a node, which has nothing
but Python's own library. A line for each URL: what came of it.

kafka://host:port asks what topics there are, without a word of who asks; with a name and a password in the
URL it asks to be let in first, by SCRAM, with a proof that is wrong whatever the password. kafkas:// is the
same by TLS, whoever signed the broker's certificate: what matters is whether it refuses such clients.
The outcome is `accepted`, `refused` (by words), `cut` (the connection was ended), `closed` or `silent`.
"""

from __future__ import annotations

import base64
import os
import socket
import ssl
import struct
import sys
from urllib.parse import urlsplit

CONNECT_WITHIN_S, ANSWER_WITHIN_S = 4, 15
METADATA, HANDSHAKE, AUTHENTICATE = 3, 17, 36  # Kafka's numbers of requests
MECHANISM = "SCRAM-SHA-512"
PROOF_BYTES = 64  # as long as a SHA-512


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def request(kind: int, version: int, body: bytes) -> bytes:
    header = struct.pack(">hhi", kind, version, 1) + text("stranger")
    return struct.pack(">i", len(header + body)) + header + body


def answer(connection: socket.socket) -> bytes:
    """Without its length and the request's number; raises EOFError where the connection ends instead."""
    (length,) = struct.unpack(">i", exactly(connection, 4))
    if not 4 <= length <= 1 << 20:
        raise EOFError("no answer of a Kafka")
    return exactly(connection, length)[4:]


def exactly(connection: socket.socket, length: int) -> bytes:
    found = b""
    while len(found) < length:
        part = connection.recv(length - len(found))
        if not part:
            raise EOFError
        found += part
    return found


def asked_for_topics(connection: socket.socket) -> str:
    # All topics, and no new ones.
    connection.sendall(request(METADATA, 5, struct.pack(">i?", -1, False)))
    answer(connection)
    return "accepted"


def asked_to_be_let_in(connection: socket.socket, user: str) -> str:
    connection.sendall(request(HANDSHAKE, 1, text(MECHANISM)))
    if error_of(answer(connection)):
        return "refused"
    nonce = base64.b64encode(os.urandom(18)).decode()
    code, told = said(connection, f"n,,n={user},r={nonce}")
    if code:
        return "refused"
    theirs = dict(part.split("=", 1) for part in told.split(","))["r"]
    proof = base64.b64encode(os.urandom(PROOF_BYTES)).decode()
    code, _ = said(connection, f"c=biws,r={theirs},p={proof}")
    return "refused" if code else "accepted"


def said(connection: socket.socket, words: str) -> tuple[int, str]:
    """A step of SCRAM: the error's number, and what the broker answered."""
    body = words.encode()
    connection.sendall(request(AUTHENTICATE, 0, struct.pack(">i", len(body)) + body))
    told = answer(connection)
    code = error_of(told)
    (reason_length,) = struct.unpack(">h", told[2:4])
    after_reason = 4 + max(reason_length, 0)
    return code, told[after_reason + 4 :].decode(errors="replace")


def error_of(told: bytes) -> int:
    code: int = struct.unpack(">h", told[:2])[0]
    return code


def outcome(url: str) -> str:
    place = urlsplit(url)
    try:
        connection = socket.create_connection((place.hostname, place.port), CONNECT_WITHIN_S)
    except TimeoutError:
        return "silent"
    except OSError:
        return "closed"
    with connection:
        connection.settimeout(ANSWER_WITHIN_S)
        try:
            if place.scheme == "kafkas":
                trusting = ssl.create_default_context()
                trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
                connection = trusting.wrap_socket(connection, server_hostname=place.hostname)
            return (
                asked_to_be_let_in(connection, place.username)
                if place.username
                else asked_for_topics(connection)
            )
        except TimeoutError:
            return "silent"
        except (OSError, EOFError, struct.error, KeyError, ValueError):
            return "cut"


if __name__ == "__main__":
    for each in sys.argv[1:]:
        print(outcome(each))
