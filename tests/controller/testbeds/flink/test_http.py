"""What a client makes of good, bad and missing answers: one line, and nothing twice that must not be."""

from __future__ import annotations

import socketserver
import threading
import time
from contextlib import contextmanager, suppress
from itertools import repeat

import pytest

from controller.testbeds.flink import http
from controller.testbeds.flink.http import Door, MissingError, RefusedError, Service, UnreachableError
from fogscale.errors import FogscaleError
from tests.support.http_server import serving


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(http, "PAUSES_S", (0.0, 0.0))


def failing(times, then):
    left = [times]

    def answer(_request):
        left[0] -= 1
        return None if left[0] >= 0 else then

    return answer


def test_a_lost_answer_is_asked_for_again():
    with serving(failing(2, (200, {"fine": True}))) as server:
        assert Service("Flink", Door(server.url)).get("/overview") == {"fine": True}
        assert len(server.requests) == 3


def test_what_must_not_happen_twice_is_not_tried_twice():
    with serving(failing(1, (200, {}))) as server:
        with pytest.raises(UnreachableError, match="cannot reach Flink"):
            Service("Flink", Door(server.url)).send("POST", "/jars/1/run", {})
        assert len(server.requests) == 1


def test_a_busy_service_is_asked_until_it_gives_up():
    with serving(lambda _: (503, {})) as server:
        with pytest.raises(UnreachableError, match="not ready"):
            Service("Prometheus", Door(server.url)).get("/x")
        assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("status", "content", "error", "words"),
    [
        pytest.param(401, {}, RefusedError, "check its credentials", id="a stranger"),
        pytest.param(403, {}, RefusedError, "check its credentials", id="without the right"),
        pytest.param(404, {"errors": ["Job not found\nat x"]}, MissingError, "Job not found$", id="missing"),
        pytest.param(409, {"message": "is too old"}, RefusedError, "409, is too old", id="Kubernetes' words"),
        pytest.param(500, {"errors": ["a", "b\n\tat c"]}, RefusedError, "500, b$", id="Flink's last words"),
        pytest.param(200, "<html>", UnreachableError, "without JSON", id="another service"),
    ],
)
def test_a_bad_answer_is_one_line(status, content, error, words):
    with serving(lambda _: (status, content)) as server:
        with pytest.raises(error, match=words) as caught:
            Service("Flink", Door(server.url)).get("/jobs/1")
        assert "\n" not in str(caught.value)


def test_nobody_there_is_said_at_once():
    with serving(lambda _: (200, {})) as server:
        pass
    with pytest.raises(UnreachableError, match="does it run"):
        Service("Flink", Door(server.url)).get("/overview")


def test_a_hung_service_is_given_up_in_time():
    released = threading.Event()

    def hang(_request):
        released.wait(5)
        return 200, {}

    with serving(hang) as server:
        with pytest.raises(UnreachableError, match="no answer in time"):
            Service("Flink", Door(server.url), answer_within_s=0.1).send("POST", "/x", {})
        released.set()


@contextmanager
def raw(head, pieces):
    """Answers once with bytes as they are, whatever HTTP says of them."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            self.rfile.readline()
            with suppress(OSError):  # the client has enough
                self.wfile.write(head)
                for piece in pieces:
                    self.wfile.write(piece)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def drops():
    while True:
        time.sleep(0.01)
        yield b" "


OK = b"HTTP/1.0 200 OK\r\n"


@pytest.mark.parametrize(
    ("head", "pieces", "words"),
    [
        pytest.param(OK + b"\r\n", drops(), "no answer in time", id="drop by drop"),
        pytest.param(OK + b"\r\n", repeat(b"[" * 65536), "more than 64 MiB", id="without end"),
        pytest.param(OK + b"\r\n", [b"[" * 100_000], "without JSON", id="too deep"),
        pytest.param(OK + b"Content-Encoding: gzip\r\n\r\n", [b"no"], "cannot reach", id="no gzip"),
        pytest.param(OK + b"Content-Length: 10\r\n\r\n", [b"{"], "cannot reach", id="cut off"),
        pytest.param(b"HTTP/1.0 200", [b"\0" * 9], "cannot reach", id="no HTTP"),
    ],
)
def test_an_answer_that_is_none_is_one_line_and_soon(head, pieces, words):
    with raw(head, pieces) as url, pytest.raises(UnreachableError, match=words):
        Service("Flink", Door(url), answer_within_s=1.0).send("GET", "/overview")


def test_an_address_that_is_none_is_one_line():
    for door in (Door("http://x\0y:1"), Door("http://x:1", token="é")):
        with pytest.raises(FogscaleError, match="check its address and token"):
            Service("Flink", door)


def test_tokens_and_logins_are_shown_to_the_service_and_to_nobody_else():
    with serving(lambda _: (200, {})) as server:
        Service("a", Door(server.url, token="secret")).get("/")
        Service("b", Door(server.url, login=("me", "secret"))).get("/")
        told = [each.headers["Authorization"] for each in server.requests]
    assert told == ["Bearer secret", "Basic bWU6c2VjcmV0"]
    assert "secret" not in repr(Door("http://x", token="secret", login=("me", "secret")))
