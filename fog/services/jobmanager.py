"""Flink's JobManager through its REST API, which only the controller's certificate opens: asked, and tried
without it."""

from __future__ import annotations

import json
import ssl
import time
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fog.services.pki import Certificate, ensure
from fogscale.errors import FogscaleError

ANSWER_WITHIN_S = 10.0
ACCEPTED, REFUSED, NO_ANSWER = "accepted", "refused", "no answer"


@dataclass(frozen=True)
class JobManager:
    address: str
    port: int
    ca: Path
    certificate: Path  # the controller's
    key: Path

    def context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.ca))
        context.load_cert_chain(self.certificate, self.key)
        return context

    def get(self, path: str) -> Any:
        """The JSON it answers; OSError or HTTPException where it does not."""
        return json.loads(_get(HTTPSConnection(self.address, self.port, timeout=ANSWER_WITHIN_S,
                                               context=self.context()), path)[1])  # fmt: skip

    def taskmanagers(self) -> list[str]:
        """The nodes they are on: a TaskManager's id is its node's name."""
        return sorted(str(each["id"]) for each in self.get("/taskmanagers")["taskmanagers"])


def _get(connection: HTTPConnection, path: str) -> tuple[int, bytes]:
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def wait(jobmanager: JobManager, node: str, patience_s: float) -> list[str]:
    """Until a TaskManager is on that node; the nodes of all."""
    deadline_s, failure = time.monotonic() + patience_s, "it knows no TaskManager there"
    while time.monotonic() < deadline_s:
        try:
            found = jobmanager.taskmanagers()
            if node in found:
                return found
        except (OSError, HTTPException, ValueError, KeyError) as error:
            failure = str(error) or type(error).__name__
        time.sleep(0.5)
    raise FogscaleError(
        f"Flink at {jobmanager.address}:{jobmanager.port} has no TaskManager on {node} after "
        f"{patience_s:.0f} s ({failure}): look at 'kubectl --namespace fogscale get pods' and their logs"
    )


def attempt(jobmanager: JobManager, context: ssl.SSLContext | None) -> str:
    """With the certificate in that context; None speaks no TLS at all. Silence is no refusal."""
    connection = (
        HTTPConnection(jobmanager.address, jobmanager.port, timeout=ANSWER_WITHIN_S)
        if context is None
        else HTTPSConnection(jobmanager.address, jobmanager.port, timeout=ANSWER_WITHIN_S, context=context)
    )
    try:
        status, _ = _get(connection, "/config")
    except TimeoutError:
        return NO_ANSWER
    except (OSError, HTTPException):
        return REFUSED
    # Without TLS it only points to where there is TLS.
    return REFUSED if status in (301, 302, 307, 308, 400, 401, 403) else ACCEPTED


def open_doors(jobmanager: JobManager) -> list[str]:
    """Which clients without the right certificate are accepted, in words."""
    nobody = ssl.create_default_context(cafile=str(jobmanager.ca))
    found = {"without TLS": attempt(jobmanager, None), "without a certificate": attempt(jobmanager, nobody)}
    with TemporaryDirectory() as folder:
        ensure(Path(folder), [Certificate("forged", "fogscale-controller")], tokens=False)
        forged = ssl.create_default_context(cafile=str(jobmanager.ca))
        forged.load_cert_chain(Path(folder) / "forged.crt", Path(folder) / "forged.key")
        found["with a certificate of another authority"] = attempt(jobmanager, forged)
    words = {
        ACCEPTED: "Flink accepts a client {}: run services.yml again",
        NO_ANSWER: "Flink neither accepts nor refuses a client {}: try again",
    }
    return [words[answer].format(how) for how, answer in found.items() if answer in words]
