"""The proof of the testbed's key: what it is good for, and what it is not."""

from __future__ import annotations

from controller.protocol.messages import INPUT, Address
from controller.protocol.wire import TESTBED, Hello, proof_of

A, B = Address(0, "1"), Address(1, "1")


def test_a_proof_is_good_for_one_key_one_end_one_connection_and_two_names():
    proofs = [
        proof_of(key, role, Hello(sender, nonce), answer, listener)
        for key in (b"key", b"another")
        for role in ("listener", "connector")
        for sender in (INPUT, TESTBED)
        for nonce in (b"1", b"2")
        for answer in (b"3", b"4")
        for listener in (A, B)
    ]
    assert len(set(proofs)) == len(proofs) == 64
