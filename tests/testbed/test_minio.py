"""What the fog's MinIO does for Flink's key, and for all others."""

from __future__ import annotations

import io
import os
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from minio import Minio
from minio.error import S3Error

from fog.services.objects import Key, ObjectStore, ensure, policy, problems
from tests.support.fog import Fog
from tests.support.services import eventually, inside, object_store

pytestmark = pytest.mark.testbed


@pytest.fixture
def store(fog: Fog) -> ObjectStore:
    return object_store(fog)


@pytest.fixture
def others(fog: Fog, store: ObjectStore) -> Iterator[str]:
    """A bucket with an object that is not Flink's."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    root = store.client(store.root)
    inside(fog, lambda: root.make_bucket(name))
    inside(fog, lambda: root.put_object(name, "plan", io.BytesIO(b"secret"), 6))
    yield name
    inside(fog, lambda: root.remove_object(name, "plan"))
    inside(fog, lambda: root.remove_bucket(name))


def write(client: Minio, bucket: str, name: str, content: bytes, part_bytes: int = 0) -> None:
    length = -1 if part_bytes else len(content)
    client.put_object(bucket, name, io.BytesIO(content), length, part_size=part_bytes)


def read(client: Minio, bucket: str, name: str) -> bytes:
    with client.get_object(bucket, name) as answer:
        return answer.read()


def refusal(work: Callable[[], object]) -> str | None:
    try:
        work()
    except S3Error as error:
        return str(error.code)
    return None


@pytest.mark.parametrize("parts", [1, 3])
def test_flinks_key_writes_reads_lists_and_deletes(fog: Fog, store: ObjectStore, parts: int) -> None:
    """In one piece, as small checkpoints come, and in parts, as large ones do."""
    content = os.urandom(parts * (5 << 20) if parts > 1 else 1000)
    name = f"savepoints/{uuid.uuid4().hex}"

    def work() -> None:
        client = store.client(store.flink)
        write(client, store.bucket, name, content, part_bytes=5 << 20 if parts > 1 else 0)
        assert read(client, store.bucket, name) == content
        assert [each.object_name for each in client.list_objects(store.bucket, name)] == [name]
        client.remove_object(store.bucket, name)
        assert list(client.list_objects(store.bucket, name)) == []

    inside(fog, work)


def test_flinks_key_opens_nothing_but_its_bucket(fog: Fog, store: ObjectStore, others: str) -> None:
    def work() -> list[str | None]:
        client = store.client(store.flink)
        return [
            refusal(lambda: read(client, others, "plan")),
            refusal(lambda: write(client, others, "plan", b"overwritten")),
            refusal(lambda: list(client.list_objects(others))),
            refusal(lambda: client.make_bucket(f"{others}-more")),
            refusal(lambda: client.remove_bucket(store.bucket)),
        ]

    assert inside(fog, work) == ["AccessDenied"] * 5
    assert others not in [
        bucket.name for bucket in inside(fog, lambda: store.client(store.flink).list_buckets())
    ]
    assert inside(fog, lambda: read(store.client(store.root), others, "plan")) == b"secret"


def test_clients_with_wrong_credentials_are_refused(fog: Fog, store: ObjectStore) -> None:
    wrong, unknown = replace(store.flink, secret="x" * 32), replace(store.flink, access="nobody")

    def tried(key: Key | None) -> str | None:
        return refusal(lambda: list(store.client(key).list_objects(store.bucket)))

    def work() -> list[str | None]:
        return [tried(key) for key in (None, wrong, unknown, store.flink)]

    assert inside(fog, work) == ["AccessDenied", "SignatureDoesNotMatch", "InvalidAccessKeyId", None]


def test_what_differs_is_made_and_what_is_there_is_left_alone(fog: Fog, store: ObjectStore) -> None:
    """The secret of the key is changed behind the role's back, then its policy."""

    def work() -> None:
        assert ensure(store) == []
        store.admin().user_add(store.flink.access, "changed-by-somebody")
        assert problems(store) != []
        assert ensure(store) == ["flink's key"]
        assert ensure(store) == []
        store.admin().policy_add("flink", policy=policy("another-bucket"))
        assert ensure(store) == ["policy of flink's key"]
        assert ensure(store) == problems(store) == []

    inside(fog, work)


def test_objects_outlive_a_crash(fog: Fog, store: ObjectStore) -> None:
    inside(fog, lambda: write(store.client(store.flink), store.bucket, "kept", b"still here"))
    fog.ask("services1", "systemctl kill --signal=KILL minio")

    def back() -> bool:
        try:
            return inside(fog, lambda: read(store.client(store.flink), store.bucket, "kept")) == b"still here"
        except Exception:
            return False

    eventually(back)
    inside(fog, lambda: store.client(store.flink).remove_object(store.bucket, "kept"))
