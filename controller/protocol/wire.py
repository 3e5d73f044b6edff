"""What goes over TCP: frames of four bytes of length and JSON, and the proof that both ends know the
testbed's key."""

from __future__ import annotations

import asyncio
import hmac
import secrets
from hashlib import sha256

import msgspec

from controller.protocol.agent import State
from controller.protocol.messages import Address, Message

LENGTH_BYTES = 4
MAX_FRAME_BYTES = 1 << 20
HANDSHAKE_BYTES = 4096  # of a frame from somebody who has proven nothing yet
NONCE_BYTES = 32
TESTBED = Address(-2, "testbed")  # who creates nodes and gives orders; no instance


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    sender: Address
    nonce: bytes


class Challenge(msgspec.Struct, frozen=True, tag="challenge"):
    nonce: bytes
    proof: bytes


class Proof(msgspec.Struct, frozen=True, tag="proof"):
    proof: bytes


class Data(msgspec.Struct, frozen=True, tag="data"):
    number: int
    message: Message


class Ack(msgspec.Struct, frozen=True, tag="ack"):
    number: int


class Order(msgspec.Struct, frozen=True, tag="order"):
    """From the testbed: duplicate onto these nodes, leave, take a record, or know that a peer is gone."""

    kind: str  # duplicate | delete | record | gone | report
    children: tuple[Address, ...] = ()
    peer: Address | None = None
    number: int = 0


class Report(msgspec.Struct, frozen=True, tag="report"):
    state: State
    refused: int  # connections and frames that were not understood, or not from a peer


Frame = Hello | Challenge | Proof | Data | Ack | Order | Report
_decoder: msgspec.json.Decoder[Frame] = msgspec.json.Decoder(Frame)
_encoder = msgspec.json.Encoder()


class BadFrameError(Exception):
    """What came is no frame of ours, or not from whom it says."""


def packed(frame: Frame) -> bytes:
    body = _encoder.encode(frame)
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


async def read_frame(reader: asyncio.StreamReader, max_bytes: int = MAX_FRAME_BYTES) -> Frame:
    length = int.from_bytes(await reader.readexactly(LENGTH_BYTES), "big")
    if not 0 < length <= max_bytes:
        raise BadFrameError(f"a frame of {length} bytes; at most {max_bytes} are allowed")
    body = await reader.readexactly(length)
    try:
        return _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadFrameError(f"not a frame: {error}") from None


def new_nonce() -> bytes:
    return secrets.token_bytes(NONCE_BYTES)


def proof_of(key: bytes, role: str, hello: Hello, answer: bytes, listener: Address) -> bytes:
    """Only who knows the key can make it; role, both nonces and both names make it good for one
    connection."""
    said = "|".join([role, str(hello.sender), str(listener), hello.nonce.hex(), answer.hex()])
    return hmac.digest(key, said.encode(), sha256)


async def introduce(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: bytes, me: Address, listener: Address
) -> None:
    """The connecting end's part of the handshake; each end proves itself to the other."""
    hello = Hello(me, new_nonce())
    writer.write(packed(hello))
    challenge = await read_frame(reader, HANDSHAKE_BYTES)
    if not isinstance(challenge, Challenge) or not hmac.compare_digest(
        challenge.proof, proof_of(key, "listener", hello, challenge.nonce, listener)
    ):
        raise BadFrameError(f"{listener} does not know the testbed's key")
    writer.write(packed(Proof(proof_of(key, "connector", hello, challenge.nonce, listener))))
    await writer.drain()


async def welcome(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: bytes, me: Address
) -> Address:
    """The listening end's part; returns who it is."""
    hello = await read_frame(reader, HANDSHAKE_BYTES)
    if not isinstance(hello, Hello):
        raise BadFrameError("no hello")
    nonce = new_nonce()
    writer.write(packed(Challenge(nonce, proof_of(key, "listener", hello, nonce, me))))
    proof = await read_frame(reader, HANDSHAKE_BYTES)
    if not isinstance(proof, Proof) or not hmac.compare_digest(
        proof.proof, proof_of(key, "connector", hello, nonce, me)
    ):
        raise BadFrameError(f"who says to be {hello.sender} does not know the testbed's key")
    return hello.sender
