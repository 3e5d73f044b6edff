"""HTTP as all clients here use it: with a CA, a client certificate or a token, with time limits, and with
errors of one line. Only what may safely happen twice is tried again."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from fogscale.errors import FogscaleError

try:
    import httpx
except ImportError:  # pragma: no cover - depends on the installation
    raise FogscaleError(
        "the clients of a real testbed are not installed: pip install 'fogscale[testbed]'"
    ) from None

CONNECT_WITHIN_S = 5.0
ANSWER_WITHIN_S = 10.0
PAUSES_S = (0.2, 0.5, 1.0)  # before the second, third and fourth try
BUSY = frozenset({502, 503, 504})  # the service, or what stands before it, is not ready yet
LONGEST_REASON = 300
LARGEST_ANSWER_BYTES = 64 << 20


class UnreachableError(FogscaleError):
    """Nobody answered, or the answer was no answer: it may work later."""


class RefusedError(FogscaleError):
    """The service does not let us in, or does not do what was asked."""


class MissingError(FogscaleError):
    """What was asked for is not there."""


@dataclass(frozen=True)
class Door:
    """Where a service is and how it lets us in. Certificates and keys are their text (PEM)."""

    url: str
    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    token: str | None = None
    login: tuple[str, str] | None = None

    def __repr__(self) -> str:
        return f"Door({self.url})"  # nothing secret in a traceback

    def tls(self) -> ssl.SSLContext | bool:
        if not self.url.startswith("https:"):
            return False  # nothing to check, and all the world's authorities take long to read
        try:
            context = ssl.create_default_context(cadata=self.ca)
            if self.certificate is not None:
                with NamedTemporaryFile("w") as file:  # only we can read it, and OpenSSL takes nothing else
                    file.write(f"{self.certificate}\n{self.key or ''}")
                    file.flush()
                    context.load_cert_chain(file.name)
        except (OSError, ssl.SSLError) as error:
            raise FogscaleError(
                f"{self.url}: cannot use its certificates ({error}): check their files"
            ) from None
        return context


class Service:
    """One service behind a door. `name` is what errors call it."""

    def __init__(
        self,
        name: str,
        door: Door,
        answer_within_s: float = ANSWER_WITHIN_S,
        *,
        only_look: bool = False,
        tries_again: bool = True,
    ) -> None:
        self.name, self.url = name, door.url.rstrip("/")
        self._only_look, self._tries_again = only_look, tries_again
        self._answer_within_s = answer_within_s
        headers = {} if door.token is None else {"Authorization": f"Bearer {door.token}"}
        try:
            self._client = httpx.Client(
                base_url=self.url,
                headers=headers,
                auth=door.login,
                verify=door.tls(),
                timeout=httpx.Timeout(answer_within_s, connect=CONNECT_WITHIN_S),
                trust_env=False,  # a proxy of this machine does not lead into the fog
            )
        except (httpx.InvalidURL, UnicodeError) as error:
            raise FogscaleError(f"{name} at {self.url}: {error}; check its address and token") from None

    def close(self) -> None:
        self._client.close()

    def use_token(self, token: str) -> None:
        """From the next request on."""
        self._client.headers["Authorization"] = f"Bearer {token}"

    def get(self, path: str, params: Mapping[str, str] | None = None) -> Any:
        return self.send("GET", path, params=params, again=True)

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        file: Path | None = None,
        again: bool = False,
    ) -> Any:
        """The JSON that was answered. `again`: what happens twice does no harm, so it may be tried again."""
        if self._only_look and method != "GET":
            raise RefusedError(f"{self.name} is only looked at here: {method} {path} is not sent")
        pauses = PAUSES_S if again and self._tries_again else ()
        for attempt in range(len(pauses) + 1):
            try:
                return self._once(method, path, body, params, headers, file)
            except UnreachableError:
                if attempt == len(pauses):
                    raise
                time.sleep(pauses[attempt])
        raise AssertionError("the last try returns or raises")

    def _once(
        self,
        method: str,
        path: str,
        body: Any,
        params: Mapping[str, str] | None,
        headers: Mapping[str, str] | None,
        file: Path | None,
    ) -> Any:
        try:
            if file is None:
                asked = self._client.stream(method, path, json=body, params=params, headers=headers)
                answer = self._whole(asked)
            else:
                with file.open("rb") as stream:
                    part = {"jarfile": (file.name, stream, "application/x-java-archive")}
                    answer = self._whole(self._client.stream(method, path, files=part, timeout=60.0))
        except httpx.TimeoutException:
            raise UnreachableError(
                f"{self.name} at {self.url} gave no answer in time: does it run?"
            ) from None
        except (httpx.RequestError, httpx.InvalidURL) as error:
            raise UnreachableError(
                f"cannot reach {self.name} at {self.url} ({error}): does it run?"
            ) from None
        return self._content(answer, f"{method} {path}")

    def _whole(self, asked: AbstractContextManager[httpx.Response]) -> httpx.Response:
        """All of an answer. httpx waits for each piece anew, and takes as many as there come."""
        with asked as answer:
            content, deadline_s = bytearray(), time.monotonic() + self._answer_within_s
            for piece in answer.iter_bytes():
                content += piece
                if len(content) > LARGEST_ANSWER_BYTES:
                    raise UnreachableError(
                        f"{self.name} at {self.url} answers with more than {LARGEST_ANSWER_BYTES >> 20} MiB:"
                        " check its address"
                    )
                if time.monotonic() > deadline_s:
                    raise httpx.ReadTimeout("its answer does not end")
        kind = {"Content-Type": answer.headers.get("Content-Type", "")}
        return httpx.Response(answer.status_code, headers=kind, content=bytes(content))

    def _content(self, answer: httpx.Response, request: str) -> Any:
        if answer.status_code in (401, 403):
            raise RefusedError(
                f"{self.name} at {self.url} refuses {request} ({answer.status_code}): check its credentials"
            )
        if answer.status_code == 404:
            raise MissingError(f"{self.name} at {self.url} does not know {request}: {_reason(answer)}")
        if answer.status_code in BUSY:
            raise UnreachableError(
                f"{self.name} at {self.url} is not ready ({answer.status_code}): try again"
            )
        if answer.is_error:
            raise RefusedError(
                f"{self.name} at {self.url}, {request}: {answer.status_code}, {_reason(answer)}"
            )
        try:
            return answer.json() if answer.content else None
        except (ValueError, RecursionError):
            raise UnreachableError(
                f"{self.name} at {self.url} answered {request} without JSON: check its address"
            ) from None


@contextmanager
def shaped(answer: str, advice: str) -> Iterator[None]:
    """Around what reads an answer: one of another shape is as good as none, whatever is wrong with it."""
    try:
        yield
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise UnreachableError(
            f"{answer} is none that we know ({type(error).__name__}: {error!s:.80}): {advice}"
        ) from None


def _reason(answer: httpx.Response) -> str:
    """The first line of what a service says: Flink lists `errors`, Kubernetes has a `message`."""
    try:
        told = answer.json()
        words = told.get("errors", [told.get("message") or told.get("error", "")])
        text = " ".join(str(words[-1]).split("\n")[0].split()) if words else ""
    except (ValueError, AttributeError, RecursionError):
        text = " ".join(answer.text.split())
    return text[:LONGEST_REASON] or "no reason given"
