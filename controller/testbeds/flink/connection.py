"""All clients of one testbed, inside its network, while this controller holds the lease."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field

from controller.testbeds.flink.access import Access, access_to
from controller.testbeds.flink.holder import has_ended, this_process
from controller.testbeds.flink.http import UnreachableError
from controller.testbeds.flink.kubernetes import Cluster, Lease, cluster_of, keep_token
from controller.testbeds.flink.prometheus import Prometheus
from controller.testbeds.flink.rest import Flink
from fog.emulation.namespaces import entered

LEASE = "fogscale-controller"
RENEW_EVERY_S = 10.0
GLANCE_S = 5.0


@dataclass
class Connection:
    access: Access
    flink: Flink
    glance: Flink  # asked once and for seconds at most: for those who cannot wait for one that hangs
    cluster: Cluster
    prometheus: Prometheus
    lease: Lease
    _renewed_s: float = field(default_factory=time.monotonic)
    _renewing: threading.Lock = field(default_factory=threading.Lock)

    def keep(self, at_once: bool = False) -> None:
        """Renews the lease and the token when it is time to, or at once; raises if somebody else has the
        lease, as after a sleep of this machine."""
        with self._renewing:
            if at_once or time.monotonic() - self._renewed_s > RENEW_EVERY_S:
                keep_token(self.cluster, self.access.kubeconfig, time.time())
                self.lease.renew()
                self._renewed_s = time.monotonic()

    def ready_nodes(self) -> frozenset[str]:
        return frozenset(node.name for node in self.cluster.nodes() if node.ready)


@contextmanager
def connected(testbed: str) -> Iterator[Connection]:
    """This thread, and all that it starts meanwhile, is in the testbed's network."""
    with ExitStack() as stack:
        access = access_to(testbed)
        stack.enter_context(entered(access.network))
        flink, cluster = Flink(access.flink), cluster_of(access.kubeconfig)
        glance = Flink(access.flink, answer_within_s=GLANCE_S, tries_again=False)
        prometheus = Prometheus(access.prometheus)
        for client in (flink, glance, cluster, prometheus):
            stack.callback(client.close)
        keep_token(cluster, access.kubeconfig, time.time())
        lease = Lease(cluster, LEASE, this_process(), has_ended=has_ended)
        lease.take()
        stack.callback(_give_up, lease)
        yield Connection(access, flink, glance, cluster, prometheus, lease)


def _give_up(lease: Lease) -> None:
    with suppress(UnreachableError):  # it runs out by itself
        lease.give_up()
