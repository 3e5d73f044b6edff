"""One agent as a process of its own, over TCP: `python -m controller.protocol.tcp CONFIG`.

Each ordered pair of agents has a connection, made by the sender and made again when it breaks. Garbage,
strangers and oversized frames cost the sender its connection and are counted; they never stop the agent."""

from __future__ import annotations

import asyncio
import errno
import random
import sys
from pathlib import Path

import msgspec

from controller.protocol.agent import ENDED, State, step
from controller.protocol.link import Inbox, Outbox
from controller.protocol.messages import (
    RECORD,
    Address,
    Delete,
    Duplicate,
    Event,
    Forward,
    Gone,
    Message,
    Reachable,
    TimedOut,
)
from controller.protocol.wire import (
    MAX_FRAME_BYTES,
    TESTBED,
    Ack,
    BadFrameError,
    Data,
    Order,
    Report,
    introduce,
    packed,
    read_frame,
    welcome,
)
from fogscale.errors import FogscaleError

HANDSHAKE_S = 5.0
RETRY_S = 0.1
LINGER_S = 5.0  # how long an ended agent tries to hand over what it still has to say
QUEUE_MESSAGES = 1000


class Config(msgspec.Struct, frozen=True):
    """What a process is started with. The key stays in a file that only its owner reads."""

    state: State
    book: list[tuple[Address, str, int]]  # every peer that may ever be met: address, host, port
    key_file: str
    max_frame_bytes: int = MAX_FRAME_BYTES
    timeout_s: float = 30.0  # a peer that leaves something unacked for so long is given up


class TcpAgent:
    """The border around one agent: sockets, queues, retries. What it does is all in `agent.step`."""

    def __init__(self, config: Config, key: bytes) -> None:
        self.state = config.state
        self.key = key
        self.max_frame_bytes = config.max_frame_bytes
        self.book = {address: (host, port) for address, host, port in config.book}
        self.timeout_s = config.timeout_s
        self.refused = 0
        self.ended = asyncio.Event()
        self._events: asyncio.Queue[Event] = asyncio.Queue(QUEUE_MESSAGES)
        self._inboxes: dict[Address, Inbox] = {}
        self._outboxes: dict[Address, Outbox] = {}
        self._news: dict[Address, asyncio.Event] = {}
        self._silent_since_s: dict[Address, float] = {}  # peers that owe an ack
        self._room = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Listens and acts until the agent has left and everybody has its last word."""
        host, port = self.book[self.state.address]
        try:
            server = await asyncio.start_server(self._accept, host, port)
        except OSError as error:
            raise FogscaleError(_why_not_listening(error, host, port)) from None
        async with server:
            acting = asyncio.create_task(self._act())
            ended = asyncio.create_task(self.ended.wait())
            self._tasks.add(asyncio.create_task(self._watch()))
            await asyncio.wait({acting, ended}, return_when=asyncio.FIRST_COMPLETED)
            if acting.done():
                acting.result()  # a fault of ours: say so rather than listen without ever acting
            await self._hand_over()
            acting.cancel()
            for task in self._tasks:
                task.cancel()

    async def _hand_over(self) -> None:
        deadline = asyncio.get_running_loop().time() + LINGER_S
        while any(box.unacked for peer, box in self._outboxes.items() if peer not in self.state.gone):
            if asyncio.get_running_loop().time() > deadline:
                return
            await asyncio.sleep(RETRY_S / 10)

    # Acting

    async def _act(self) -> None:
        while True:
            self._do(await self._events.get())
            while self.state.queue and self.state.is_active and (self.state.succs or self.state.is_last):
                self._do(Forward(random.choice(sorted(self.state.succs)) if self.state.succs else None))
            while self._is_full():
                self._room.clear()
                await self._room.wait()  # nothing is taken in until somebody takes something off
            if self.state.status == ENDED:
                self.ended.set()

    def _is_full(self) -> bool:
        return any(
            len(box.unacked) >= QUEUE_MESSAGES
            for peer, box in self._outboxes.items()
            if peer not in self.state.gone
        )

    async def _watch(self) -> None:
        """Gives peers up that have been silent for too long. What they were sent is kept for their return."""
        while True:
            await asyncio.sleep(self.timeout_s / 10)
            now_s = asyncio.get_running_loop().time()
            for peer, box in list(self._outboxes.items()):
                if not box.unacked or peer in self.state.gone:
                    self._silent_since_s.pop(peer, None)
                elif now_s - self._silent_since_s.setdefault(peer, now_s) > self.timeout_s:
                    self._do(TimedOut(peer))
                    self._room.set()

    def _do(self, event: Event) -> None:
        self.state, messages, _ = step(self.state, event)
        if isinstance(event, Gone):
            self._outboxes.pop(event.peer, None)
        for message in messages:
            self._send(message)

    def _send(self, message: Message) -> None:
        peer = message.receiver
        if peer not in self.book:
            self.refused += 1
            return
        self._outboxes[peer] = self._outboxes.get(peer, Outbox()).push(message)
        if peer not in self._news:
            self._news[peer] = asyncio.Event()
            task = asyncio.create_task(self._keep_sending(peer))
            self._tasks.add(task)
        self._news[peer].set()

    # Sending

    async def _keep_sending(self, peer: Address) -> None:
        """One connection after the other, as long as there is something to say."""
        while True:
            await self._news[peer].wait()
            writer = None
            try:
                reader, writer = await asyncio.open_connection(*self.book[peer])
                await asyncio.wait_for(
                    introduce(reader, writer, self.key, self.state.address, peer), HANDSHAKE_S
                )
                await self._reached(peer)
                await self._talk(peer, reader, writer)
            except (OSError, EOFError, BadFrameError, TimeoutError):
                await asyncio.sleep(RETRY_S)
            finally:
                if writer is not None:
                    writer.close()

    async def _reached(self, peer: Address) -> None:
        if peer in self.state.gone:
            await self._events.put(Reachable(peer))

    async def _talk(self, peer: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """All that is not acked goes again on a new connection, then what comes up."""
        listening = asyncio.create_task(self._hear_acks(peer, reader))
        sent = -1
        try:
            while not listening.done():
                self._news[peer].clear()
                for number, message in self._outboxes.get(peer, Outbox()).unacked:
                    if number > sent:
                        writer.write(packed(Data(number, message)))
                        sent = number
                await writer.drain()
                news = asyncio.create_task(self._news[peer].wait())
                await asyncio.wait({news, listening}, return_when=asyncio.FIRST_COMPLETED)
                news.cancel()
            listening.result()
        finally:
            listening.cancel()
            if self._outboxes.get(peer, Outbox()).unacked:
                self._news[peer].set()

    async def _hear_acks(self, peer: Address, reader: asyncio.StreamReader) -> None:
        while True:
            frame = await read_frame(reader, self.max_frame_bytes)
            if not isinstance(frame, Ack):
                raise BadFrameError("no ack")
            if peer in self._outboxes:
                self._outboxes[peer] = self._outboxes[peer].acked(frame.number)
                self._silent_since_s.pop(peer, None)
            await self._reached(peer)
            self._room.set()

    # Listening

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        try:
            peer = await asyncio.wait_for(welcome(reader, writer, self.key, self.state.address), HANDSHAKE_S)
            if peer != TESTBED and peer not in self.book:
                raise BadFrameError(f"{peer} is in nobody's book")
            await self._reached(peer)
            while True:
                frame = await read_frame(reader, self.max_frame_bytes)
                writer.write(packed(await self._taken(peer, frame)))
                await writer.drain()
        except (BadFrameError, TimeoutError):
            self.refused += 1
        except (OSError, EOFError, asyncio.CancelledError):
            pass  # the other end closed, or we do: whatever it was, it comes again on the next connection
        finally:
            writer.close()

    async def _taken(self, peer: Address, frame: object) -> Ack | Report:
        if isinstance(frame, Order) and peer == TESTBED:
            return await self._ordered(frame)
        if not isinstance(frame, Data) or frame.message.sender != peer:
            raise BadFrameError(f"{peer} may not say this")
        inbox = self._inboxes.get(peer, Inbox())
        if inbox.takes(frame.number):
            self._inboxes[peer] = inbox = inbox.taken()
            await self._events.put(frame.message)
        return Ack(inbox.ack)

    async def _ordered(self, order: Order) -> Report:
        me = self.state.address
        event: Event | None = None
        if order.kind == "duplicate":
            event = Duplicate(order.children)
        elif order.kind == "delete":
            event = Delete()
        elif order.kind == "record":
            event = Message(RECORD, TESTBED, me, number=order.number)
        elif order.kind == "gone" and order.peer is not None:
            event = Gone(order.peer)
        elif order.kind != "report":
            raise BadFrameError(f"no order: {order.kind}")
        if event is not None:
            await self._events.put(event)
        return Report(self.state, self.refused)


def _why_not_listening(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} of {host} is taken: stop what listens there, or choose another"
    return f"cannot listen on port {port} of {host}: {error.strerror}; choose another"


async def order(where: tuple[str, int], agent: Address, key: bytes, given: Order) -> Report:
    """The testbed's side: one order to one agent, and its state."""
    reader, writer = await asyncio.open_connection(*where)
    try:
        await introduce(reader, writer, key, TESTBED, agent)
        writer.write(packed(given))
        report = await read_frame(reader)
    finally:
        writer.close()
    if not isinstance(report, Report):
        raise BadFrameError("no report")
    return report


def main(arguments: list[str]) -> int:
    try:
        if len(arguments) != 1:
            raise FogscaleError(
                "name one file with the agent's settings: python -m controller.protocol.tcp FILE"
            )
        config, key = _settings(Path(arguments[0]))
        asyncio.run(TcpAgent(config, key).run())
    except FogscaleError as error:
        print(f"fogscale: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


def _settings(file: Path) -> tuple[Config, bytes]:
    try:
        config = msgspec.json.decode(file.read_bytes(), type=Config)
        key = Path(config.key_file).read_bytes()
    except OSError as error:
        raise FogscaleError(f"cannot read {error.filename}: {error.strerror}; name another file") from None
    except msgspec.DecodeError as error:
        raise FogscaleError(f"{file} has no settings of an agent: {error}") from None
    if config.state.address not in {address for address, _, _ in config.book}:
        raise FogscaleError(f"{file}: 'book' has no address for {config.state.address} itself: add it")
    if not key:
        raise FogscaleError(f"{config.key_file} is empty: write the testbed's key into it")
    return config, key


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
