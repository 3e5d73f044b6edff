"""A real Kafka broker (KRaft, one process) for tests and benchmarks, assembled once from Maven artifacts."""

from __future__ import annotations

import base64
import os
import random
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from analysis.spark import cache_folder, java_home
from fog.artifacts.store import store
from fog.folders import checkout
from fog.services.pki import Certificate, ensure, ensure_keystore
from fogscale.errors import FogscaleError

if TYPE_CHECKING:
    from confluent_kafka import Message

READY_WITHIN_S = 300.0  # with what others leave of the processor

# Below what Linux gives to outgoing connections: a client that retries while the broker is away must not be
# given the broker's own port, which would keep the broker from coming back.
_PORTS = range(15_000, 30_000)

# A child that ends with its parent, even if that is killed: the signal of PR_SET_PDEATHSIG outlives exec.
_DIE_WITH_PARENT = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); "
    "os.getppid() == int(sys.argv[1]) or sys.exit(1); os.execv(sys.argv[2], sys.argv[2:])"
)

_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
num.network.threads=2
num.io.threads=4
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
"""

_COLLECTOR = ("-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")  # as Kafka's own scripts start it

_LOGGING = """\
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss,SSS} %p %c{1}: %m%n
"""


class KafkaMissingError(Exception):
    """The broker cannot be had on this machine; says why."""


def kafka_jars() -> Path:
    """The folder with Kafka's jars: those of the testbed, fetched by Maven the first time."""
    try:
        return store(checkout(), cache_folder()).ensure("kafka")[0]
    except FogscaleError as error:
        raise KafkaMissingError(str(error)) from error


def java_command(main_class: str, heap_mb: int = 256, *options: str) -> list[str]:
    """The start of a command line that runs one of Kafka's programs."""
    try:
        java = java_home() / "bin" / "java"
    except FogscaleError as error:
        raise KafkaMissingError(str(error)) from error
    return [str(java), f"-Xmx{heap_mb}m", *options, "-cp", f"{kafka_jars()}/*", main_class]


class Broker:
    """One broker that keeps its address and its data when it is stopped, killed and started again."""

    def __init__(self, folder: Path, heap_mb: int = 256) -> None:
        self.folder = folder
        self.heap_mb = heap_mb
        self.port, self.controller_port = _free_ports(2)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        return self.folder / "broker.log"

    @property
    def pid(self) -> int:
        assert self._process is not None, "the broker does not run"
        return self._process.pid

    def __enter__(self) -> Broker:
        self._format()
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def start(self, wait: bool = True) -> None:
        """Starts the broker, and waits until it answers a client unless told not to."""
        options = (f"-Xms{self.heap_mb}m", *_COLLECTOR, f"-Dlog4j2.configurationFile={self._logging}")
        command = java_command("kafka.Kafka", self.heap_mb, *options)
        guarded = [sys.executable, "-c", _DIE_WITH_PARENT, str(os.getpid()), *command, str(self._properties)]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(guarded, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        if wait:
            self.wait_until_ready()

    def wait_until_ready(self) -> None:
        """Ready is when a client gets an answer that names a broker."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        assert self._process is not None
        client = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        deadline_s = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < deadline_s:
            if self._process.poll() is not None:
                raise KafkaMissingError(f"the broker ended at once: {self.log.read_text()[-500:]}")
            try:
                if client.list_topics(timeout=1.0).brokers:
                    return
            except KafkaException:
                continue
        raise KafkaMissingError(f"the broker gave no answer within {READY_WITHIN_S:.0f} s; see {self.log}")

    def stop(self) -> None:
        """An orderly shutdown."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self.kill()
        self._process = None

    def kill(self) -> None:
        """SIGKILL: whatever the broker did not write to its files yet is lost."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._process = None

    def create_topic(self, name: str, partitions: int = 4, **config: str) -> str:
        """A new topic that its leaders serve already; config keys are written with _ for a dot."""
        from confluent_kafka.admin import AdminClient
        from confluent_kafka.cimpl import NewTopic

        settings = {key.replace("_", "."): value for key, value in config.items()}
        client = AdminClient({"bootstrap.servers": self.bootstrap})
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=settings)
        client.create_topics([topic])[name].result(timeout=30)
        self._wait_for_leaders(name, partitions)
        return name

    def _wait_for_leaders(self, topic: str, partitions: int) -> None:
        from confluent_kafka import Consumer, KafkaException, TopicPartition

        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "leaders"})
        deadline_s = time.monotonic() + READY_WITHIN_S
        waiting = list(range(partitions))
        while waiting and time.monotonic() < deadline_s:
            try:
                consumer.get_watermark_offsets(TopicPartition(topic, waiting[-1]), timeout=5)
                waiting.pop()
            except KafkaException:
                time.sleep(0.05)
        consumer.close()

    def messages(self, topic: str) -> Iterator[Message]:
        """All that a topic holds by now, partition by partition."""
        from confluent_kafka import Consumer, KafkaError, TopicPartition

        consumer = Consumer(
            {"bootstrap.servers": self.bootstrap, "group.id": "reader", "enable.partition.eof": True}
        )
        left = set(consumer.list_topics(topic, timeout=30).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, partition, 0) for partition in left])
        deadline_s = time.monotonic() + READY_WITHIN_S
        while left:
            assert time.monotonic() < deadline_s, f"partitions {left} of {topic} were not read to their end"
            for message in consumer.consume(10_000, 0.1):
                if message.error() is None:
                    yield message
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    left.discard(message.partition())
        consumer.close()

    @property
    def _properties(self) -> Path:
        return self.folder / "server.properties"

    @property
    def _logging(self) -> Path:
        return self.folder / "log4j2.properties"

    def _settings(self) -> str:
        return _PROPERTIES.format(
            port=self.port, controller_port=self.controller_port, data=self.folder / "data"
        )

    def _format_options(self) -> list[str]:
        return []

    def _format(self) -> None:
        """Writes the configuration and prepares an empty data folder, once."""
        self._logging.write_text(_LOGGING)
        self._properties.write_text(self._settings())
        cluster = base64.urlsafe_b64encode(b"\0" + uuid.uuid4().bytes[1:]).decode().rstrip("=")
        quick = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", f"-Dlog4j2.configurationFile={self._logging}")
        command = java_command("kafka.tools.StorageTool", 128, *quick)
        done = subprocess.run(
            [*command, "format", "-t", cluster, "-c", str(self._properties), *self._format_options()],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise KafkaMissingError(
                f"its data folder cannot be prepared: {(done.stderr or done.stdout)[-300:]}"
            )


class SecuredBroker(Broker):
    """With a second listener, which speaks TLS."""

    def __init__(self, folder: Path, heap_mb: int = 256) -> None:
        super().__init__(folder, heap_mb)
        (self.tls_port,) = _free_ports(1)

    @property
    def tls_bootstrap(self) -> str:
        return f"127.0.0.1:{self.tls_port}"

    @property
    def tls_access(self) -> dict[str, str]:
        """What a client of that listener is told."""
        return {"security.protocol": "SSL", "ssl.ca.location": str(self.folder / "tls/ca.crt")}

    def _settings(self) -> str:
        folder, password = self.folder / "tls", uuid.uuid4().hex
        ensure(folder, [Certificate("broker", "broker", hosts=("127.0.0.1",), is_client=False)], tokens=False)
        ensure_keystore(folder, "broker", password)
        (folder / "broker.p12").write_bytes(base64.b64decode((folder / "broker.p12.b64").read_bytes()))
        text = super()._settings()
        for key in ("listeners", "advertised.listeners"):
            text = text.replace(f"\n{key}=", f"\n{key}=SSL://127.0.0.1:{self.tls_port},")
        return text.replace("map=", "map=SSL:SSL,") + (
            f"inter.broker.listener.name=PLAINTEXT\nssl.keystore.type=PKCS12\n"
            f"ssl.keystore.location={folder / 'broker.p12'}\n"
            f"ssl.keystore.password={password}\nssl.key.password={password}\n"
        )


class FogBroker(Broker):
    """With a second listener for users with passwords, as the broker of a testbed has it."""

    def __init__(self, folder: Path, passwords: dict[str, str], heap_mb: int = 256) -> None:
        super().__init__(folder, heap_mb)
        self._passwords = passwords
        (self.users_port,) = _free_ports(1)

    def _settings(self) -> str:
        text = super()._settings()
        for key in ("listeners", "advertised.listeners"):
            text = text.replace(f"\n{key}=", f"\n{key}=SASL_PLAINTEXT://127.0.0.1:{self.users_port},")
        login = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        return text.replace("map=", "map=SASL_PLAINTEXT:SASL_PLAINTEXT,") + (
            "inter.broker.listener.name=PLAINTEXT\nsasl.enabled.mechanisms=SCRAM-SHA-512\n"
            f"listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config={login}\n"
        )

    def _format_options(self) -> list[str]:
        return [
            word
            for user, password in self._passwords.items()
            for word in ("--add-scram", f"SCRAM-SHA-512=[name={user},iterations=4096,password={password}]")
        ]


def _free_ports(count: int) -> list[int]:
    found: list[int] = []
    while len(found) < count:
        port = random.choice(_PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in found:
            found.append(port)
    return found
