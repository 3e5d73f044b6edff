"""A web server on a node, for what nodes ask before they are changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

# It promises a body and never sends it: whoever reads one is left with an error.
CODE = """
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        code = int(self.path[1:])
        self.send_response(code)
        if code == 200:
            self.send_header("Content-Length", "1000000")
        self.end_headers()
HTTPServer(("ADDRESS", 8099), Handler).serve_forever()
"""


@contextmanager
def numbers(ask: Callable[[str], str], address: str) -> Iterator[str]:
    """Where a server on the node that `ask` speaks to answers GET, not HEAD, with the number in the path."""
    listens = "until ss -Hltn sport = :8099 | grep --quiet .; do sleep 0.1; done"
    code = CODE.replace("ADDRESS", address)
    ask(f"systemd-run --quiet --collect --unit=numbers python3 -c '{code}' && timeout 20 sh -c '{listens}'")
    try:
        yield f"http://{address}:8099"
    finally:
        ask("systemctl stop numbers.service")
