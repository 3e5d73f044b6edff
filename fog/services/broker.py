"""Users, rights and topics of the fog's Kafka: made where they are missing, and tried for real."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from fogscale.errors import FogscaleError

ADMIN, FLINK, PRODUCER = "admin", "flink", "producer"
MECHANISM = "SCRAM-SHA-512"
SCRAM_ITERATIONS = 4096
ANSWER_WITHIN_S = 10.0


@dataclass(frozen=True)
class Broker:
    bootstrap: str
    passwords: Mapping[str, str] = field(repr=False)  # user → password
    ca: str = ""  # file with the certificate to trust; empty: the broker speaks no TLS

    def access(self, user: str, password: str | None = None) -> dict[str, Any]:
        """Settings of a client that comes as `user`."""
        return {
            "bootstrap.servers": self.bootstrap,
            **self.transport("SASL_"),
            "sasl.mechanism": MECHANISM,
            "sasl.username": user,
            "sasl.password": self.passwords[user] if password is None else password,
            "log_level": 0,
        }

    def transport(self, sasl: str = "") -> dict[str, str]:
        """How it is spoken to, whoever comes."""
        if not self.ca:
            return {"security.protocol": f"{sasl}PLAINTEXT"}
        return {"security.protocol": f"{sasl}SSL", "ssl.ca.location": self.ca}

    def client(self, access: Mapping[str, Any]) -> Any:
        return _library().AdminClient(dict(access))

    def admin(self, patience_s: float) -> Any:
        """The administrator's client, once the broker answers it."""
        refused: list[str] = []
        client = self.client({**self.access(ADMIN), "error_cb": lambda error: _note(error, refused)})
        deadline_s = time.monotonic() + patience_s
        while time.monotonic() < deadline_s and not refused:
            if lets_in(client, 1.0):
                return client
        if refused:
            raise FogscaleError(
                f"Kafka at {self.bootstrap} refuses its administrator: its data is of another testbed, "
                "remove it (role kafka, tasks_from reset) and run site.yml again"
            )
        raise FogscaleError(
            f"Kafka at {self.bootstrap} gave no answer within {patience_s:.0f} s: look at "
            "'journalctl -u kafka' on its node"
        )


def _library() -> Any:
    """Its types are not exported."""
    import confluent_kafka.admin

    return confluent_kafka.admin


def _note(error: Any, refused: list[str]) -> None:
    from confluent_kafka import KafkaError

    if error.code() == KafkaError._AUTHENTICATION:
        refused.append(error.str())


def lets_in(client: Any, timeout_s: float) -> bool:
    """Whether the broker answers this client; if not, its error_cb hears why."""
    from confluent_kafka import KafkaException

    try:
        return bool(client.list_topics(timeout=timeout_s).brokers)
    except KafkaException:
        client.poll(0)
        return False


@contextmanager
def _plain_errors(broker: Broker) -> Iterator[None]:
    from confluent_kafka import KafkaException

    try:
        yield
    except KafkaException as error:
        raise FogscaleError(
            f"Kafka at {broker.bootstrap} does not do its administrator's work ({error}): look at "
            "'journalctl -u kafka' on its node"
        ) from None


def ensure(broker: Broker, topics: Sequence[str], partitions: int, patience_s: float = 120.0) -> list[str]:
    """What had to be changed, in words."""
    admin = broker.admin(patience_s)
    with _plain_errors(broker):
        return [
            *_ensure_users(broker, admin),
            *_ensure_rights(admin, topics),
            *_ensure_topics(admin, topics, partitions),
        ]


def _ensure_users(broker: Broker, admin: Any) -> list[str]:
    """A user whose password works is left alone."""
    library = _library()
    users = [user for user in broker.passwords if user != ADMIN]
    known = _known_users(admin, users)
    changed = [
        user for user in users if user not in known or not lets_in(broker.client(broker.access(user)), 5.0)
    ]
    info = library.ScramCredentialInfo(library.ScramMechanism.SCRAM_SHA_512, SCRAM_ITERATIONS)
    wanted = [
        library.UserScramCredentialUpsertion(user, info, broker.passwords[user].encode()) for user in changed
    ]
    if wanted:
        for answer in admin.alter_user_scram_credentials(wanted).values():
            answer.result(timeout=ANSWER_WITHIN_S)
    return [f"user {user}" for user in changed]


def _known_users(admin: Any, users: Sequence[str]) -> set[str]:
    from confluent_kafka import KafkaException

    known = set()
    for user, answer in admin.describe_user_scram_credentials(list(users)).items():
        try:
            answer.result(timeout=ANSWER_WITHIN_S)
            known.add(user)
        except KafkaException:  # the broker's way to say that there is none
            continue
    return known


def rights(topics: Sequence[str]) -> list[tuple[str, str, str, str]]:
    """User, kind of thing, its name and what may be done with it. Reading and writing include describing."""
    return [
        (FLINK, "TOPIC", "*", "READ"),
        (FLINK, "TOPIC", "*", "WRITE"),
        (FLINK, "GROUP", "*", "READ"),
        (FLINK, "TRANSACTIONAL_ID", "*", "WRITE"),
        # It reads back what it sent, to prove that nothing was lost.
        *((PRODUCER, "TOPIC", topic, action) for topic in topics for action in ("READ", "WRITE")),
    ]


def _ensure_rights(admin: Any, topics: Sequence[str]) -> list[str]:
    library = _library()
    kinds, patterns, actions = library.ResourceType, library.ResourcePatternType, library.AclOperation
    permission = library.AclPermissionType
    everything = library.AclBindingFilter(
        kinds.ANY, None, patterns.ANY, None, None, actions.ANY, permission.ANY
    )
    given = set(admin.describe_acls(everything).result(timeout=ANSWER_WITHIN_S))
    wanted = [
        library.AclBinding(
            kinds[kind], name, patterns.LITERAL, f"User:{user}", "*", actions[action], permission.ALLOW
        )
        for user, kind, name, action in rights(topics)
    ]
    missing = [binding for binding in wanted if binding not in given]
    if missing:
        for answer in admin.create_acls(missing).values():
            answer.result(timeout=ANSWER_WITHIN_S)
    return [f"right of {binding.principal} to {binding.operation.name} {binding.name}" for binding in missing]


def _ensure_topics(admin: Any, topics: Sequence[str], partitions: int) -> list[str]:
    library = _library()

    there = admin.list_topics(timeout=ANSWER_WITHIN_S).topics
    new = [topic for topic in topics if topic not in there]
    narrow = [topic for topic in topics if topic in there and len(there[topic].partitions) < partitions]
    answers: dict[str, Any] = {}
    if new:
        answers |= admin.create_topics([library.NewTopic(topic, partitions, 1) for topic in new])
    if narrow:
        answers |= admin.create_partitions([library.NewPartitions(topic, partitions) for topic in narrow])
    for answer in answers.values():
        answer.result(timeout=ANSWER_WITHIN_S)
    return [f"topic {topic}" for topic in (*new, *narrow)]


def problems(broker: Broker, topics: Sequence[str], partitions: int) -> list[str]:
    """What does not work, in words: a record goes through a topic of its own, a stranger stays outside."""
    admin = broker.admin(ANSWER_WITHIN_S)
    with _plain_errors(broker):
        there = admin.list_topics(timeout=ANSWER_WITHIN_S).topics
        found = [
            f"topic {topic} does not have {partitions} partitions: run site.yml again"
            for topic in topics
            if topic not in there or len(there[topic].partitions) < partitions
        ]
        failures = [] if found else _failures_of_a_record(broker, admin)
        return found + [f"no record comes through: {each}" for each in failures] + _open_doors(broker)


def _failures_of_a_record(broker: Broker, admin: Any) -> list[str]:
    """By the administrator's own topic: a record in a topic of experiments would be counted there."""
    from confluent_kafka import KafkaException

    topic, said = f"verify-{uuid.uuid4().hex[:12]}", uuid.uuid4().bytes
    admin.create_topics([_library().NewTopic(topic, 1, 1)])[topic].result(timeout=ANSWER_WITHIN_S)
    try:
        send(broker.access(FLINK), topic, said)
        heard = receive(broker.access(FLINK), topic)
        return [] if heard == said else [f"{heard!r} came instead of {said!r}"]
    except (KafkaException, FogscaleError) as error:
        return [str(error)]
    finally:
        admin.delete_topics([topic])[topic].result(timeout=ANSWER_WITHIN_S)


def send(access: Mapping[str, Any], topic: str, value: bytes) -> None:
    """One record; raises if the broker does not take it."""
    from confluent_kafka import KafkaException, Producer

    failures: list[Any] = []
    producer = Producer({**access, "message.timeout.ms": int(ANSWER_WITHIN_S * 1000)})
    producer.produce(topic, value, on_delivery=lambda error, _: failures.append(error) if error else None)
    if producer.flush(ANSWER_WITHIN_S + 1) or failures:
        raise KafkaException(*failures) if failures else FogscaleError("the broker does not answer: start it")


def receive(access: Mapping[str, Any], topic: str) -> bytes | None:
    """The first record of partition 0, or None if none comes."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

    consumer = Consumer({**access, "group.id": f"verify-{topic}", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        message = consumer.poll(ANSWER_WITHIN_S)
        if message is None:
            return None
        failure = message.error()
        if failure is not None:
            raise KafkaException(failure)
        value: bytes | None = message.value()
        return value
    finally:
        consumer.close()


def _open_doors(broker: Broker) -> list[str]:
    strangers: dict[str, dict[str, Any]] = {
        "without a name": {"bootstrap.servers": broker.bootstrap, **broker.transport(), "log_level": 0},
        "with a wrong password": broker.access(FLINK, password=uuid.uuid4().hex),
    }
    if broker.ca:
        strangers["without TLS"] = {**broker.access(FLINK), "security.protocol": "SASL_PLAINTEXT"}
    words = {
        "let in": "Kafka lets a stranger in {}: run site.yml again",
        "no answer": "Kafka neither lets a stranger in {} nor turns it away: try again",
    }
    answers = {how: knock(broker, access) for how, access in strangers.items()}
    return [words[answer].format(how) for how, answer in answers.items() if answer in words]


def knock(broker: Broker, access: Mapping[str, Any]) -> Literal["let in", "turned away", "no answer"]:
    """Silence is no refusal: a broker may just be slow."""
    heard: list[Any] = []
    client = broker.client({**access, "error_cb": heard.append})
    deadline_s = time.monotonic() + ANSWER_WITHIN_S
    while time.monotonic() < deadline_s:
        if lets_in(client, 0.5):
            return "let in"
        if heard:
            return "turned away"
    return "no answer"
