"""Users, rights and topics of the fog's Kafka: made where they are missing, and tried for real."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from fogscale.errors import FogscaleError

ADMIN, FLINK, PRODUCER = "admin", "flink", "producer"
OURS = "fogscale-"  # how consumer groups and transactional ids of jobs begin
VERIFIED = f"{OURS}verify-"  # how topics begin that exist only while `verify` runs
_BOTH = ("READ", "WRITE")
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


class Right(NamedTuple):
    """Reading and writing include describing."""

    user: str
    kind: str
    name: str
    action: str
    pattern: str = "LITERAL"  # PREFIXED: all names that begin so

    def __str__(self) -> str:
        return f"right of {self.user} to {self.action} {self.kind} {self.name}"


def rights(topics: Sequence[str]) -> list[Right]:
    """All that users other than the administrator may do."""
    return [
        # The producer reads back what it sent, to prove that nothing was lost.
        *(
            Right(user, "TOPIC", topic, action)
            for user in (FLINK, PRODUCER)
            for topic in topics
            for action in _BOTH
        ),
        *(Right(FLINK, "TOPIC", VERIFIED, action, "PREFIXED") for action in _BOTH),
        Right(FLINK, "GROUP", OURS, "READ", "PREFIXED"),
        Right(FLINK, "TRANSACTIONAL_ID", OURS, "WRITE", "PREFIXED"),
    ]


def _ensure_rights(admin: Any, topics: Sequence[str]) -> list[str]:
    """What our users may do beyond it is taken away: an earlier version, or topics of earlier days."""
    library = _library()
    kinds, patterns, actions = library.ResourceType, library.ResourcePatternType, library.AclOperation
    anything = (None, actions.ANY, library.AclPermissionType.ANY)
    given: set[Any] = set()
    for user in (FLINK, PRODUCER):
        asked = library.AclBindingFilter(kinds.ANY, None, patterns.ANY, f"User:{user}", *anything)
        given |= set(admin.describe_acls(asked).result(timeout=ANSWER_WITHIN_S))
    wanted = {binding(right): right for right in rights(topics)}
    missing = [each for each in wanted if each not in given]
    excess = sorted(given - set(wanted))
    answers: list[Any] = []
    if missing:
        answers += admin.create_acls(missing).values()
    if excess:
        answers += admin.delete_acls([_filter_of(each) for each in excess]).values()
    for answer in answers:
        answer.result(timeout=ANSWER_WITHIN_S)
    return [str(wanted[each]) for each in missing] + [
        f"no {Right(each.principal.removeprefix('User:'), each.restype.name, each.name, each.operation.name)}"
        for each in excess
    ]


def binding(right: Right) -> Any:
    library = _library()
    return library.AclBinding(
        library.ResourceType[right.kind],
        right.name,
        library.ResourcePatternType[right.pattern],
        f"User:{right.user}",
        "*",
        library.AclOperation[right.action],
        library.AclPermissionType.ALLOW,
    )


def _filter_of(given: Any) -> Any:
    """That finds this one alone."""
    return _library().AclBindingFilter(
        given.restype,
        given.name,
        given.resource_pattern_type,
        given.principal,
        given.host,
        given.operation,
        given.permission_type,
    )


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
    """What does not work, in words: a record goes through a topic of its own, Flink is refused what is not
    its own, and clients without credentials are refused altogether."""
    admin = broker.admin(ANSWER_WITHIN_S)
    with _plain_errors(broker):
        there = admin.list_topics(timeout=ANSWER_WITHIN_S).topics
        found = [
            f"topic {topic} does not have {partitions} partitions: run site.yml again"
            for topic in topics
            if topic not in there or len(there[topic].partitions) < partitions
        ]
        with _topics_to_verify(admin) as (allowed, forbidden):
            failures = [] if found else _failures_of_a_record(broker, allowed)
            beyond = beyond_its_rights(broker, FLINK, forbidden)
        return [
            *found,
            *(f"no record comes through: {each}" for each in failures),
            *(f"Kafka lets Flink use a {each} that is not its own: run site.yml again" for each in beyond),
            *_open_doors(broker),
        ]


@contextmanager
def _topics_to_verify(admin: Any) -> Iterator[tuple[str, str]]:
    """One that Flink may use and one that it may not: a record in a topic of experiments would be counted."""
    key = uuid.uuid4().hex[:12]
    names = f"{VERIFIED}{key}", f"verify-{key}"
    for answer in admin.create_topics([_library().NewTopic(name, 1, 1) for name in names]).values():
        answer.result(timeout=ANSWER_WITHIN_S)
    try:
        yield names
    finally:
        for answer in admin.delete_topics(list(names)).values():
            answer.result(timeout=ANSWER_WITHIN_S)


def _failures_of_a_record(broker: Broker, topic: str) -> list[str]:
    from confluent_kafka import KafkaException

    said = uuid.uuid4().bytes
    try:
        send(broker.access(FLINK), topic, said)
        heard = receive(broker.access(FLINK), topic)
        return [] if heard == said else [f"{heard!r} came instead of {said!r}"]
    except (KafkaException, FogscaleError) as error:
        return [str(error)]


def beyond_its_rights(broker: Broker, user: str, name: str) -> list[str]:
    """Which things of that name, all of others, the user is not refused: topic, group, transactional id."""
    from confluent_kafka import KafkaError, Producer

    access = broker.access(user)

    def read_group() -> None:
        client = broker.client(access)  # without it, nobody would answer
        client.describe_consumer_groups([name])[name].result(timeout=ANSWER_WITHIN_S)

    def begin_transaction() -> None:
        Producer({**access, "transactional.id": name}).init_transactions(ANSWER_WITHIN_S)

    tried = {
        "topic": (lambda: send(access, name, b"refused"), KafkaError.TOPIC_AUTHORIZATION_FAILED),
        "group": (read_group, KafkaError.GROUP_AUTHORIZATION_FAILED),
        "transactional id": (begin_transaction, KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    }
    return [thing for thing, (work, refusal) in tried.items() if failure_code(work) != refusal]


def failure_code(work: Callable[[], object]) -> int | None:
    """Kafka's number of why it did not do that; None: it did."""
    from confluent_kafka import KafkaException

    try:
        work()
    except KafkaException as error:
        code: int = error.args[0].code()
        return code
    return None


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

    consumer = Consumer({**access, "group.id": f"{OURS}{topic}", "enable.auto.commit": False})
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
    clients: dict[str, dict[str, Any]] = {
        "without a name": {"bootstrap.servers": broker.bootstrap, **broker.transport(), "log_level": 0},
        "with a wrong password": broker.access(FLINK, password=uuid.uuid4().hex),
    }
    if broker.ca:
        clients["without TLS"] = {**broker.access(FLINK), "security.protocol": "SASL_PLAINTEXT"}
    words = {
        "accepted": "Kafka accepts a client {}: run site.yml again",
        "no answer": "Kafka neither accepts nor refuses a client {}: try again",
    }
    answers = {how: attempt(broker, access) for how, access in clients.items()}
    return [words[answer].format(how) for how, answer in answers.items() if answer in words]


def attempt(broker: Broker, access: Mapping[str, Any]) -> Literal["accepted", "refused", "no answer"]:
    """Silence is no refusal: a broker may just be slow."""
    heard: list[Any] = []
    client = broker.client({**access, "error_cb": heard.append})
    deadline_s = time.monotonic() + ANSWER_WITHIN_S
    while time.monotonic() < deadline_s:
        if lets_in(client, 0.5):
            return "accepted"
        if heard:
            return "refused"
    return "no answer"
