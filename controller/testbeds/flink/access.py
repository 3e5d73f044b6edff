"""How the services of a testbed are reached: from what the playbooks left in its state folder."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from controller.testbeds.flink.bucket import Bucket
from controller.testbeds.flink.http import Door
from fog.emulation.state import State
from fog.folders import state_folder
from fog.manifest import Manifest, read
from fog.services.broker import FLINK, PRODUCER, Broker
from fog.services.objects import Key
from fogscale.errors import FogscaleError

READER = "fogscale"  # Prometheus' user
KUBECONFIG = "controller.kubeconfig"


@dataclass(frozen=True)
class Access:
    """Everything that leads into one testbed."""

    folder: Path  # its state
    manifest: Manifest
    network: Path | None  # the namespace from which it can be reached; None: this machine's own
    flink: Door
    prometheus: Door
    kubeconfig: Path
    kafka: Broker = field(repr=False)
    bucket: Bucket = field(repr=False)

    def service(self, name: str) -> str:
        """Where a service of the testbed listens, as host:port."""
        return _address(self.manifest, name)

    @property
    def fog_nodes(self) -> tuple[str, ...]:
        return tuple(node.name for node in self.manifest.nodes if node.group == "fog")

    @property
    def services_nodes(self) -> tuple[str, ...]:
        """Whose TaskManager is always there."""
        return tuple(node.name for node in self.manifest.nodes if node.group == "services")


def access_to(testbed: str) -> Access:
    """Raises where the testbed is not built or does not run."""
    folder = state_folder(testbed)
    manifest = read(folder, testbed)
    network = State(folder).network() if manifest.emulated else None
    passwords = {user: _secret(folder, f"kafka_{user}") for user in (FLINK, PRODUCER)}
    return Access(
        folder,
        manifest,
        network,
        flink=_flink(manifest),
        prometheus=_prometheus(manifest, _secret(folder, "prometheus_reader")),
        kubeconfig=folder / KUBECONFIG,
        kafka=Broker(_address(manifest, "kafka"), passwords, _ca(manifest, "kafka")),
        bucket=_bucket(folder, manifest),
    )


def _bucket(folder: Path, manifest: Manifest) -> Bucket:
    key = Key(_secret(folder, "minio_flink_access"), _secret(folder, "minio_flink_secret"))
    return Bucket(_address(manifest, "minio"), key, _ca(manifest, "minio"))


def _flink(manifest: Manifest) -> Door:
    """Its REST API opens to the controller's certificate only."""
    told = manifest.services.get("flink", {})
    try:
        return Door(
            told["url"], ca=_text(told["ca"]), certificate=_text(told["certificate"]), key=_text(told["key"])
        )
    except KeyError as error:
        raise FogscaleError(
            f"testbed.json does not tell Flink's {error.args[0]}: build the testbed again with this version"
        ) from None


def _prometheus(manifest: Manifest, password: str) -> Door:
    address, ca = _address(manifest, "prometheus"), _ca(manifest, "prometheus")
    if not ca:
        return Door(f"http://{address}", login=(READER, password))
    return Door(f"https://{address}", ca=_text(ca), login=(READER, password))


def _ca(manifest: Manifest, service: str) -> str:
    """The file with the certificate to trust; empty where the service speaks no TLS."""
    return str(manifest.services.get(service, {}).get("ca", ""))


def _address(manifest: Manifest, service: str) -> str:
    try:
        told = manifest.services[service]
        return f"{manifest.addresses.get(told['node'], told['node'])}:{told['port']}"
    except KeyError:
        raise FogscaleError(
            f"testbed.json does not say where {service} is: build the testbed again with this version"
        ) from None


def _secret(folder: Path, name: str) -> str:
    return _text(folder / "secrets" / name).strip()


def _text(file: Path | str) -> str:
    try:
        return Path(file).read_text()
    except OSError as error:
        raise FogscaleError(
            f"cannot read the testbed's secret {Path(file).name} ({error.strerror}): build it, "
            f"or be the user who did"
        ) from None
