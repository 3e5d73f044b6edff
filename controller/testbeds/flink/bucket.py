"""What of a job's state lies in the bucket, whatever became of the JobManager that knew it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from controller.testbeds.flink.http import RefusedError, UnreachableError
from fog.services.objects import Key, client

if TYPE_CHECKING:
    from datetime import datetime

BUCKET = "fogscale"
METADATA = "/_metadata"  # written last: with it a checkpoint is complete
_PREFIX_LETTERS = 6  # of a job's id, in the names of its savepoints


class Bucket:
    """By Flink's own key."""

    def __init__(self, endpoint: str, key: Key, ca: str = "", bucket: str = BUCKET) -> None:
        self._endpoint, self._bucket = endpoint, bucket
        self._key, self._ca = key, ca

    def newest_state(self, job: str) -> str | None:
        """Where the newest complete checkpoint or savepoint of a job lies. No other will do: what was read
        since an older one is committed already, and would be a second time."""
        prefixes = (f"checkpoints/{job}/", f"savepoints/savepoint-{job[:_PREFIX_LETTERS]}-")
        complete = [
            (written, name) for prefix in prefixes for written, name in self._objects(prefix)
            if name.endswith(METADATA)
        ]  # fmt: skip
        if not complete:
            return None
        return f"s3://{self._bucket}/{max(complete)[1].removesuffix(METADATA)}"

    def _objects(self, prefix: str) -> Iterator[tuple[datetime, str]]:
        from minio.error import MinioException, S3Error
        from urllib3.exceptions import HTTPError

        store = client(self._endpoint, self._key, self._ca)  # rarely asked, so that nothing is kept of it
        try:
            for each in store.list_objects(self._bucket, prefix, recursive=True):
                if each.last_modified is not None and each.object_name is not None:
                    yield each.last_modified, each.object_name
        except S3Error as error:
            raise RefusedError(
                f"MinIO at {self._endpoint} does not list '{self._bucket}' ({error.code}): check its key"
            ) from None
        except (MinioException, HTTPError) as error:
            raise UnreachableError(
                f"cannot reach MinIO at {self._endpoint} ({type(error).__name__}): does it run?"
            ) from None
