"""Agents as processes of their own on localhost: real sockets, real garbage."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import time

import msgspec
import pytest

from controller.protocol.agent import State, child_of, pipeline
from controller.protocol.messages import INPUT, Address, Message
from controller.protocol.tcp import Config, TcpAgent, main, order
from controller.protocol.wire import (
    TESTBED,
    BadFrameError,
    Data,
    Hello,
    Order,
    Proof,
    Report,
    introduce,
    packed,
    proof_of,
    read_frame,
)
from fogscale.errors import FogscaleError

A1, A2, B1, B2 = Address(0, "1"), Address(0, "2"), Address(1, "1"), Address(1, "2")
NEW = A1.child(1)
WAIT_S = 60


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


class Testbed:
    """Starts a process per instance, gives orders, ends what it started."""

    __test__ = False

    def __init__(self, folder, addresses):
        self.folder = folder
        self.key = secrets.token_bytes(32)
        (folder / "key").write_bytes(self.key)
        ports = free_ports(len(addresses))
        self.book = {a: ("127.0.0.1", port) for a, port in zip(addresses, ports, strict=True)}
        self.processes = {}

    def start(self, state, **settings):
        path = self.folder / f"{state.address}.json"
        book = [(a, host, port) for a, (host, port) in self.book.items()]
        path.write_bytes(msgspec.json.encode(Config(state, book, str(self.folder / "key"), **settings)))
        self.processes[state.address] = subprocess.Popen(
            [sys.executable, "-m", "controller.protocol.tcp", str(path)],
            env=os.environ,
            stderr=subprocess.PIPE,
        )

    def tell(self, agent, kind, **words):
        return asyncio.run(order(self.book[agent], agent, self.key, Order(kind, **words)))

    def until(self, agent, condition):
        deadline = time.monotonic() + WAIT_S
        report = None
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError, EOFError):
                report = self.tell(agent, "report")
                if condition(report.state):
                    return report
            time.sleep(0.05)
        raise AssertionError(f"{agent} never got there: {report}")

    def close(self):
        for process in self.processes.values():
            process.kill()
            process.wait()
            process.stderr.close()


@pytest.fixture
def testbed(tmp_path):
    states = pipeline((2, 2))
    bed = Testbed(tmp_path, [*states, NEW])
    try:
        for state in states.values():
            bed.start(state)
        for address in states:
            bed.until(address, lambda _: True)
        yield bed
    finally:
        bed.close()


def duplicate(bed):
    bed.start(child_of(bed.tell(A1, "report").state, NEW))
    bed.until(NEW, lambda state: state.status == "idle")
    bed.tell(A1, "duplicate", children=(NEW,))


def test_processes_duplicate_delete_and_pass_records_on(testbed):
    duplicate(testbed)
    testbed.tell(B2, "delete")
    child = testbed.until(NEW, lambda state: state.status == "active" and state.succs == {B1}).state
    assert child.preds == {INPUT}
    for address in (A1, A2):
        testbed.until(address, lambda state: state.succs == {B1} and not state.operations)
    testbed.until(INPUT, lambda state: state.succs == {A1, A2, NEW})
    testbed.until(B1, lambda state: state.preds == {A1, A2, NEW})
    assert testbed.processes[B2].wait(WAIT_S) == 0  # it has left, and its process with it
    for number in range(20):
        testbed.tell(INPUT, "record", number=number)
    got = testbed.until(B1, lambda state: len(state.consumed) == 20).state
    assert sorted(got.consumed) == list(range(20))


def test_a_peer_that_was_away_gets_everything_when_it_is_back_and_garbage_stops_nobody(testbed):
    """A process is stopped in mid-protocol (a partition that heals); strangers shout at A1 meanwhile."""
    testbed.processes[B2].send_signal(19)  # SIGSTOP
    duplicate(testbed)
    host, port = testbed.book[A1]
    for garbage in (
        b"GET / HTTP/1.1\r\n\r\n",
        b"\0\0\0\x05hello",
        b"\xff" * 64,
        (2**31).to_bytes(4, "big"),
        b"",
    ):
        with socket.create_connection((host, port)) as stranger:
            stranger.sendall(garbage)
            stranger.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionResetError):
                stranger.recv(1000)
    report = testbed.until(A1, lambda state: state.operations and state.operations[0].waiting == {B2})
    assert report.refused >= 3
    testbed.processes[B2].send_signal(18)  # SIGCONT
    testbed.until(NEW, lambda state: state.status == "active")
    testbed.until(B2, lambda state: state.preds == {A1, A2, NEW})


def test_a_peer_that_vanishes_in_mid_protocol_is_left_out(testbed):
    testbed.processes[B2].kill()
    testbed.processes[B2].wait()
    duplicate(testbed)
    testbed.until(A1, lambda state: state.operations and state.operations[0].waiting == {B2})
    for address in (A1, A2, NEW):
        testbed.tell(address, "gone", peer=B2)
    child = testbed.until(NEW, lambda state: state.status == "active").state
    assert child.succs == {B1}
    testbed.until(B1, lambda state: state.preds == {A1, A2, NEW})


async def with_agent(use, **settings):
    """One agent inside this process; `use` gets it and its port."""
    (port,) = free_ports(1)
    book = [(A1, "127.0.0.1", port), (INPUT, "127.0.0.1", 1)]
    agent = TcpAgent(Config(State(A1, preds=frozenset({INPUT})), book, "", **settings), b"key")
    task = asyncio.create_task(agent.run())
    for _ in range(200):
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            break
        except OSError:
            await asyncio.sleep(0.01)
    try:
        return await use(agent, reader, writer)
    finally:
        writer.close()
        task.cancel()


async def closed(reader):
    with contextlib.suppress(EOFError, OSError):
        await asyncio.wait_for(read_frame(reader), 10)
        return False
    return True


def test_who_does_not_know_the_key_is_refused():
    async def use(agent, reader, writer):
        with pytest.raises(BadFrameError, match="does not know the testbed's key"):
            await introduce(reader, writer, b"wrong", INPUT, A1)
        writer.write(packed(Data(0, Message("deletion", INPUT, A1))))
        assert await closed(reader)
        return agent.refused, agent.state.ignored

    assert asyncio.run(with_agent(use)) == (1, 0)


def test_what_the_agent_itself_has_proven_proves_nothing_when_it_is_sent_back():
    async def use(agent, reader, writer):
        writer.write(packed(Hello(TESTBED, b"nonce")))
        challenge = await read_frame(reader)
        writer.write(packed(Proof(challenge.proof)))
        writer.write(packed(Order("delete")))
        assert await closed(reader)
        return agent.refused, agent.state.status

    assert asyncio.run(with_agent(use)) == (1, "active")


def test_a_proof_heard_on_one_connection_is_worth_nothing_on_the_next():
    async def use(agent, reader, writer):
        hello = Hello(TESTBED, b"nonce")
        writer.write(packed(hello))
        challenge = await read_frame(reader)
        heard = Proof(proof_of(b"key", "connector", hello, challenge.nonce, A1))
        writer.write(packed(heard))
        writer.write(packed(Order("report")))
        assert isinstance(await read_frame(reader), Report)  # good once
        reader, writer = await asyncio.open_connection(*agent.book[A1])
        writer.write(packed(hello))
        await read_frame(reader)
        writer.write(packed(heard))
        assert await closed(reader)
        writer.close()
        return agent.refused

    assert asyncio.run(with_agent(use)) == 1


def test_who_has_proven_nothing_yet_may_not_send_much():
    async def use(agent, reader, writer):
        writer.write(packed(Hello(Address(0, "x" * 5000), b"nonce")))
        assert await closed(reader)
        return agent.refused

    assert asyncio.run(with_agent(use)) == 1


@pytest.mark.parametrize(
    ("who", "frame"),
    [
        pytest.param(Address(7, "9"), Data(0, Message("count", Address(7, "9"), A1)), id="an unknown sender"),
        pytest.param(INPUT, Data(0, Message("deletion", A2, A1)), id="a message in another's name"),
        pytest.param(INPUT, Order("delete"), id="an order that is not the testbed's"),
        pytest.param(INPUT, Hello(INPUT, b""), id="a second hello"),
        pytest.param(TESTBED, Order("dance"), id="an order nobody knows"),
        pytest.param(INPUT, Data(0, Message("record" * 500, INPUT, A1)), id="a message longer than allowed"),
    ],
)
def test_what_a_peer_may_not_say_closes_its_connection_and_is_counted(who, frame):
    async def use(agent, reader, writer):
        await introduce(reader, writer, b"key", who, A1)
        writer.write(packed(frame))
        assert await closed(reader)
        return agent.refused, agent.state

    refused, state = asyncio.run(with_agent(use, max_frame_bytes=2000))
    assert refused == 1
    assert state == State(A1, preds=frozenset({INPUT}))


def test_a_frame_twice_is_taken_once():
    async def use(agent, reader, writer):
        await introduce(reader, writer, b"key", INPUT, A1)
        newcomer = Message("record", INPUT, A1, number=5)
        for number in (0, 0, 2, 1):
            writer.write(packed(Data(number, newcomer)))
        acks = [(await read_frame(reader)).number for _ in range(4)]
        await asyncio.sleep(0.1)
        return acks, agent.state.queue

    assert asyncio.run(with_agent(use)) == ([0, 0, 0, 1], (5, 5))


def test_a_taken_port_is_one_line():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        agent_config = Config(State(A1), [(A1, "127.0.0.1", port)], "")

        async def run():
            await TcpAgent(agent_config, b"key").run()

        with pytest.raises(
            FogscaleError, match=f"port {port} of 127.0.0.1 is taken: stop what listens there"
        ):
            asyncio.run(run())


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(None, "cannot read", id="no such file"),
        pytest.param("not JSON", "has no settings of an agent", id="not JSON"),
        pytest.param("{}", "has no settings of an agent", id="nothing in it"),
        pytest.param(
            {"state": State(A1), "book": [], "key_file": "key"}, "no address for O0,1",
            id="not in its own book",
        ),
        pytest.param(
            {"state": State(A1), "book": [(A1, "127.0.0.1", 1)], "key_file": "none"}, "cannot read none",
            id="no key",
        ),
        pytest.param(
            {"state": State(A1), "book": [(A1, "127.0.0.1", 1)], "key_file": "empty"}, "empty is empty",
            id="an empty key",
        ),
        pytest.param(
            {"state": State(A1), "book": [(A1, "192.0.2.1", 1)], "key_file": "key"},
            "cannot listen on port 1",
            id="another host's address",
        ),
    ],
)  # fmt: skip
def test_settings_that_make_no_sense_are_one_line(tmp_path, monkeypatch, capsys, content, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "key").write_bytes(b"key")
    (tmp_path / "empty").touch()
    file = tmp_path / "agent.json"
    if content is not None:
        file.write_bytes(content.encode() if isinstance(content, str) else msgspec.json.encode(content))
    assert main([str(file)]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1


def test_garbage_from_a_peer_that_knows_the_key_is_counted_and_the_next_message_is_taken():
    async def use(agent, reader, writer):
        await introduce(reader, writer, b"key", INPUT, A1)
        writer.write(b"\0\0\0\x05\xff\xfe{}[")
        assert await closed(reader)
        host, port = agent.book[A1]
        reader, writer = await asyncio.open_connection(host, port)
        await introduce(reader, writer, b"key", INPUT, A1)
        writer.write(packed(Data(0, Message("record", INPUT, A1, number=5))))
        ack = await read_frame(reader)
        writer.close()
        return agent.refused, ack.number

    assert asyncio.run(with_agent(use)) == (1, 0)


@pytest.fixture
def impatient(tmp_path):
    """Two operators of one instance that give each other up within seconds."""
    states = pipeline((1, 1))
    bed = Testbed(tmp_path, [*states, NEW])
    try:
        for state in states.values():
            bed.start(state, timeout_s=2.0)
        for address in states:
            bed.until(address, lambda _: True)
        yield bed
    finally:
        bed.close()


def test_a_peer_that_falls_silent_in_mid_protocol_is_given_up_and_taken_in_again_when_it_is_back(impatient):
    os.kill(impatient.processes[B1].pid, signal.SIGSTOP)
    impatient.start(child_of(impatient.tell(A1, "report").state, NEW), timeout_s=2.0)
    impatient.until(NEW, lambda state: state.status == "idle")
    impatient.tell(A1, "duplicate", children=(NEW,))
    impatient.until(A1, lambda state: B1 in state.gone and not state.operations)
    impatient.until(NEW, lambda state: state.status == "active")  # nobody waits for the silent one
    os.kill(impatient.processes[B1].pid, signal.SIGCONT)
    impatient.until(B1, lambda state: state.preds == {A1, NEW})
    for address in (A1, NEW):
        impatient.until(address, lambda state: state.succs == {B1} and B1 not in state.gone)
