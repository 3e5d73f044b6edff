"""The bucket of the fog's MinIO and Flink's key, which opens nothing else: made where missing, and tried."""

from __future__ import annotations

import io
import json
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from fogscale.errors import FogscaleError

if TYPE_CHECKING:
    from minio import Minio
    from minio.minioadmin import MinioAdmin
    from urllib3 import PoolManager

POLICY = "flink"
ANSWER_WITHIN_S = 10.0


@dataclass(frozen=True)
class Key:
    access: str
    secret: str = field(repr=False)


@dataclass(frozen=True)
class ObjectStore:
    endpoint: str  # address:port
    bucket: str
    root: Key
    flink: Key
    ca: str = ""  # file with the certificate to trust; empty: it speaks no TLS

    def client(self, key: Key | None) -> Minio:
        """None: nobody."""
        return client(self.endpoint, key, self.ca)

    def admin(self) -> MinioAdmin:
        from minio.credentials.providers import StaticProvider
        from minio.minioadmin import MinioAdmin

        root = StaticProvider(self.root.access, self.root.secret)
        return MinioAdmin(
            endpoint=self.endpoint,
            credentials=root,
            secure=bool(self.ca),
            http_client=_impatient(self.ca),
        )


def client(endpoint: str, key: Key | None, ca: str) -> Minio:
    """Of a store at address:port, with a key or as nobody; `ca` is as in ObjectStore."""
    from minio import Minio

    return Minio(
        endpoint,
        access_key=None if key is None else key.access,
        secret_key=None if key is None else key.secret,
        secure=bool(ca),
        region="us-east-1",
        http_client=_impatient(ca),
    )


def _impatient(ca: str) -> PoolManager:
    """The library's own client retries for minutes."""
    from urllib3 import PoolManager, Retry, Timeout

    return PoolManager(
        timeout=Timeout(ANSWER_WITHIN_S), retries=Retry(0), cert_reqs="CERT_REQUIRED", ca_certs=ca or None
    )


def policy(bucket: str) -> dict[str, Any]:
    """Everything within one bucket, nothing else, and not the bucket itself."""
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Action": ["s3:GetBucketLocation", "s3:ListBucket", "s3:ListBucketMultipartUploads"],
                "Resource": [f"arn:aws:s3:::{bucket}"],
            },
            {
                "Effect": "Allow",
                "Action": [
                    "s3:AbortMultipartUpload", "s3:DeleteObject", "s3:GetObject",
                    "s3:ListMultipartUploadParts", "s3:PutObject",
                ],
                "Resource": [f"arn:aws:s3:::{bucket}/*"],
            },
        ],
    }  # fmt: skip


@contextmanager
def _plain_errors(store: ObjectStore) -> Iterator[None]:
    from minio.error import S3Error
    from urllib3.exceptions import HTTPError

    try:
        yield
    except (HTTPError, S3Error) as error:
        raise FogscaleError(
            f"MinIO at {store.endpoint} does not do what it is asked ({error}): "
            "look at 'journalctl -u minio' on its node"
        ) from None


def ensure(store: ObjectStore, patience_s: float = 60.0) -> list[str]:
    """What had to be changed, in words."""
    _wait(store, patience_s)
    with _plain_errors(store):
        root = store.client(store.root)
        changes = []
        if not root.bucket_exists(store.bucket):
            root.make_bucket(store.bucket)
            changes.append(f"bucket {store.bucket}")
        return changes + _ensure_key(store, store.admin())


def _wait(store: ObjectStore, patience_s: float) -> None:
    from minio.error import S3Error
    from urllib3.exceptions import HTTPError

    deadline_s = time.monotonic() + patience_s
    failure = "no answer"
    while time.monotonic() < deadline_s:
        try:
            store.client(store.root).list_buckets()
            return
        except S3Error as error:
            failure = str(error.code)
            if error.code in ("InvalidAccessKeyId", "SignatureDoesNotMatch"):
                break
        except HTTPError:
            failure = "no answer"
        time.sleep(0.2)
    raise FogscaleError(
        f"MinIO at {store.endpoint} does not let its root in ({failure}): "
        "look at 'journalctl -u minio' on its node"
    )


def _ensure_key(store: ObjectStore, admin: MinioAdmin) -> list[str]:
    """A key that works is left alone."""
    changes = []
    wanted = policy(store.bucket)
    if _same_policy(_told(lambda: admin.policy_info(POLICY)), wanted) is False:
        admin.policy_add(POLICY, policy=wanted)
        changes.append("policy of flink's key")
    user = _told(lambda: admin.user_info(store.flink.access))
    if user is None or not _opens(store, store.flink):
        admin.user_add(store.flink.access, store.flink.secret)
        changes.append("flink's key")
    if user is None or POLICY not in str(user.get("policyName", "")).split(","):
        admin.attach_policy([POLICY], user=store.flink.access)
        changes.append("what flink's key opens")
    return changes


def _told(ask: Callable[[], str]) -> dict[str, Any] | None:
    """None: there is no such thing."""
    from minio.error import MinioAdminException

    try:
        answer: dict[str, Any] = json.loads(ask())
    except MinioAdminException as error:
        if error._code == "404":
            return None
        raise FogscaleError(f"MinIO does not answer its administrator: {error}") from None
    return answer


def _same_policy(told: dict[str, Any] | None, wanted: dict[str, Any]) -> bool:
    """MinIO sorts as it likes."""
    if told is None:
        return False
    given = told.get("Policy", told)
    return _as_set(given) == _as_set(wanted)


def _as_set(given: dict[str, Any]) -> set[tuple[str, frozenset[str], frozenset[str]]]:
    return {
        (part["Effect"], frozenset(part["Action"]), frozenset(part["Resource"]))
        for part in given["Statement"]
    }


def _opens(store: ObjectStore, key: Key | None) -> bool:
    """Whether the key may list the bucket. A key without rights is told apart from a wrong one."""
    from minio.error import S3Error

    try:
        next(iter(store.client(key).list_objects(store.bucket)), None)
    except S3Error as error:
        return key is not None and error.code == "AccessDenied"
    return True


def problems(store: ObjectStore) -> list[str]:
    """What does not work, in words: an object goes through with Flink's key, all else is refused."""
    _wait(store, ANSWER_WITHIN_S)
    with _plain_errors(store):
        return _failures_of_an_object(store) + _open_doors(store)


def _failures_of_an_object(store: ObjectStore) -> list[str]:
    from minio.error import S3Error

    name, content = f"verify/{uuid.uuid4().hex}", uuid.uuid4().bytes
    flink = store.client(store.flink)
    found = []
    try:
        flink.put_object(store.bucket, name, io.BytesIO(content), len(content))
        with flink.get_object(store.bucket, name) as answer:
            if answer.read() != content:
                found.append(f"MinIO gave back another object than {name}")
        flink.remove_object(store.bucket, name)
    except S3Error as error:
        found.append(
            f"flink's key does not open the bucket {store.bucket} ({error.code}): run site.yml again"
        )
    return found


def _open_doors(store: ObjectStore) -> list[str]:
    from minio.error import S3Error

    other = f"verify-{uuid.uuid4().hex[:12]}"
    wrong = replace(store.flink, secret=uuid.uuid4().hex)
    tried: dict[str, Callable[[], Any]] = {
        "anybody list the bucket": lambda: list(store.client(None).list_objects(store.bucket)),
        "a wrong key list the bucket": lambda: list(store.client(wrong).list_objects(store.bucket)),
        "flink's key make buckets": lambda: store.client(store.flink).make_bucket(other),
        "flink's key delete its bucket": lambda: store.client(store.flink).remove_bucket(store.bucket),
    }
    found = []
    for what, attempt in tried.items():
        try:
            attempt()
            found.append(f"MinIO lets {what}: run site.yml again")
        except S3Error as error:
            if error.code not in ("AccessDenied", "SignatureDoesNotMatch", "InvalidAccessKeyId"):
                found.append(f"MinIO is asked to let {what} and says {error.code}")
    return found
