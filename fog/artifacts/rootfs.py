"""The root file system of all emulated nodes: from Debian's packages, built once per definition."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from fog.artifacts.cache import make_once
from fogscale.errors import FogscaleError, unknown

RECIPE = 2  # raised when what is done below changes
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}

# Nothing in a node may reach outside or wake up by itself.
MASKED_UNITS = (
    "apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer",
    "e2scrub_reap.service",
    "fstrim.timer", "systemd-timesyncd.service", "systemd-resolved.service", "systemd-networkd.service",
    "console-getty.service", "getty@.service", "systemd-logind.service", "systemd-hwdb-update.service",
    "systemd-udevd.service", "systemd-udev-trigger.service", "systemd-remount-fs.service",
    "sys-kernel-debug.mount",
    "sys-kernel-tracing.mount", "modprobe@.service", "systemd-pcrphase.service", "systemd-binfmt.service",
)  # fmt: skip
# Manual pages stay: Java's package fails without their folders.
LEFT_OUT = ("/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/info/*")


@dataclass(frozen=True)
class Recipe:
    suite: str
    packages: tuple[str, ...]
    disabled_units: tuple[str, ...] = ()  # installed, but started by a role, not by the package
    mirror: str = ""  # empty: the one mmdebstrap chooses by itself

    @property
    def architecture(self) -> str:
        machine = platform.machine()
        if machine not in ARCHITECTURES:
            raise FogscaleError(unknown("architecture of this machine", machine, ARCHITECTURES))
        return ARCHITECTURES[machine]

    @property
    def key(self) -> str:
        """The same for the same content: where the packages come from is no part of it."""
        content = {
            **asdict(self),
            "mirror": "",
            "packages": sorted(set(self.packages)),
            "disabled_units": sorted(set(self.disabled_units)),
            "masked": MASKED_UNITS,
            "recipe": RECIPE,
            "architecture": self.architecture,
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]

    def folder(self, cache: Path) -> Path:
        return cache / f"rootfs-{self.key}"


def ensure(recipe: Recipe, cache: Path) -> tuple[Path, bool]:
    """The folder, and whether it had to be built."""

    def build(target: Path) -> None:
        check_tools()
        _bootstrap(recipe, target)
        _settle(recipe, target)

    folder = recipe.folder(cache)
    return folder, make_once(folder, build)


def check_tools() -> None:
    if os.geteuid() != 0:
        raise FogscaleError("the nodes' root file system is built by root: run the same command with sudo")
    if shutil.which("mmdebstrap") is None:
        raise FogscaleError("mmdebstrap is not installed: apt-get install mmdebstrap")


def bootstrap_command(recipe: Recipe, target: Path) -> list[str]:
    excluded = [f"--dpkgopt=path-exclude={pattern}" for pattern in LEFT_OUT]
    return [
        # Dies with us, in namespaces of its own: an interrupted build leaves neither mounts nor processes.
        "setpriv", "--pdeathsig", "KILL",
        "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
        "mmdebstrap", "--mode=root", "--variant=minbase", f"--architectures={recipe.architecture}",
        '--aptopt=APT::Install-Recommends "false"', *excluded,
        f"--include={','.join(recipe.packages)}", recipe.suite, str(target),
        *([recipe.mirror] if recipe.mirror else []),
    ]  # fmt: skip


def _bootstrap(recipe: Recipe, target: Path) -> None:
    environment = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    log = target.with_suffix(".log")
    with log.open("w") as file:
        done = subprocess.run(
            bootstrap_command(recipe, target),
            stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=environment, check=False,
        )  # fmt: skip
    if done.returncode != 0:
        told = [
            line for line in log.read_text().splitlines() if line.startswith(("E:", "Err:", "dpkg: error"))
        ]
        raise FogscaleError(
            f"the nodes' root file system could not be built from Debian's packages "
            f"({told[0] if told else 'no reason given'}; all of it: {log}): "
            f"check the network, the package names and emulated_nodes_mirror"
        )
    log.unlink()


def _settle(recipe: Recipe, root: Path) -> None:
    """What must not be the same on every node goes, what a node does not need sleeps."""
    for pattern in ("etc/ssh/ssh_host_*", "etc/machine-id", "var/lib/dbus/machine-id", "etc/resolv.conf"):
        for path in root.glob(pattern):
            path.unlink()
    (root / "etc/resolv.conf").write_text("# the fog has no way out; roles may name servers of its own\n")
    units = root / "etc/systemd/system"
    for unit in MASKED_UNITS:
        (units / unit).unlink(missing_ok=True)
        (units / unit).symlink_to("/dev/null")
    for folder in units.glob("*.wants"):
        for unit in recipe.disabled_units:  # a link into the node's own /lib: to this machine it dangles
            (folder / unit).unlink(missing_ok=True)
    folder = root / "etc/systemd/journald.conf.d"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "fog.conf").write_text("[Journal]\nStorage=volatile\nRuntimeMaxUse=16M\n")


def packages_of(names: Sequence[str]) -> tuple[str, ...]:
    """Names only: an option smuggled in between would reach apt."""
    for name in names:
        if not name or not all(character.isalnum() or character in "+-." for character in name):
            raise FogscaleError(f"'{name}' is no name of a Debian package: fix emulated_nodes_packages")
    return tuple(names)
