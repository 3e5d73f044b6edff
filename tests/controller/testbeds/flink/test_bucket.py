"""Which state of a job a bucket holds, asked of a server that lists objects as S3 does."""

import pytest

from controller.testbeds.flink.bucket import Bucket
from controller.testbeds.flink.http import RefusedError, UnreachableError
from fog.services.objects import Key
from tests.support.http_server import serving

JOB = "0123456789abcdef0123456789abcdef"
KEY = Key("flink", "secret-of-flink")


def listing(objects):
    """A bucket with these objects: name → second of the minute in which it was written."""

    def answer(request):
        prefix = request.path.partition("prefix=")[2].partition("&")[0].replace("%2F", "/")
        found = [name for name in sorted(objects) if name.startswith(prefix)]
        entries = "".join(
            f"<Contents><Key>{name}</Key><LastModified>2026-01-01T00:00:{objects[name]:06.3f}Z</LastModified>"
            "<Size>1</Size></Contents>"
            for name in found
        )
        schema = "http://s3.amazonaws.com/doc/2006-03-01/"
        text = f"<Name>fogscale</Name><IsTruncated>false</IsTruncated>{entries}"
        return 200, f'<ListBucketResult xmlns="{schema}">{text}</ListBucketResult>'

    return answer


def newest(answer):
    with serving(answer) as server:
        return Bucket(server.url.removeprefix("http://"), KEY).newest_state(JOB)


def test_the_newest_complete_checkpoint_is_found():
    objects = {
        f"checkpoints/{JOB}/chk-9/_metadata": 10,
        f"checkpoints/{JOB}/chk-10/_metadata": 15,
        f"checkpoints/{JOB}/chk-11/part": 20,  # not complete
        "checkpoints/another/chk-99/_metadata": 30,
    }
    assert newest(listing(objects)) == f"s3://fogscale/checkpoints/{JOB}/chk-10"


def test_a_savepoint_made_after_the_last_checkpoint_is_newer():
    objects = {
        f"checkpoints/{JOB}/chk-9/_metadata": 10,
        "savepoints/savepoint-012345-aa/_metadata": 11,
        "savepoints/savepoint-fedcba-bb/_metadata": 12,  # of another job
    }
    assert newest(listing(objects)) == "s3://fogscale/savepoints/savepoint-012345-aa"
    objects[f"checkpoints/{JOB}/chk-10/_metadata"] = 12  # the job ran on
    assert newest(listing(objects)) == f"s3://fogscale/checkpoints/{JOB}/chk-10"


def test_a_job_without_state_has_none():
    assert newest(listing({})) is None


def test_a_key_that_is_refused_and_a_store_that_is_away_are_told_apart():
    refusal = "<Error><Code>AccessDenied</Code><Message>no</Message></Error>"
    with pytest.raises(RefusedError, match="AccessDenied"):
        newest(lambda _: (403, refusal))
    with pytest.raises(UnreachableError, match="does it run"):
        Bucket("127.0.0.1:1", KEY).newest_state(JOB)
