"""One emulated node: its disk, an overlay on the common root file system, and what boots it."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from pathlib import Path

from fog.emulation.definition import Definition, EmulatedNode

REBOOT = 133  # what nspawn ends with when the node asked to be started again
INIT = "/usr/local/sbin/fog-init"
# Of what nspawn leaves a container, what no node needs.
DROPPED = ("CAP_AUDIT_CONTROL", "CAP_LINUX_IMMUTABLE", "CAP_SYS_TTY_CONFIG", "CAP_LEASE", "CAP_NET_BROADCAST")

# The node's own memory and the kernel settings that a kubelet insists on are shown by files bound over
# those of the machine: nothing of the machine itself is changed.
INIT_SCRIPT = """\
#!/bin/sh
# First process of an emulated node: what nspawn leaves read-only or shows of the whole machine, then systemd.
for controller in cpu cpuacct cpuset memory pids blkio devices freezer; do
  [ -d /sys/fs/cgroup/$controller ] && mount -o remount,bind,rw /sys/fs/cgroup/$controller
done
mount --make-rshared /
shown=/run/fog; mkdir -p $shown
show() { [ -e "$1" ] && mount --bind "$2" "$1"; }
for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \\
    kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
  file=$shown/$(echo "${setting%=*}" | tr / .)
  echo "${setting#*=}" > "$file"
  show "/proc/sys/${setting%=*}" "$file"
done
sed -E "s/^(MemTotal|MemFree|MemAvailable): .*/\\1: $FOG_MEMORY_KB kB/; s/^(Swap[A-Za-z]*): .*/\\1: 0 kB/" \\
  /proc/meminfo > $shown/meminfo
show /proc/meminfo $shown/meminfo
unset FOG_MEMORY_KB
exec /lib/systemd/systemd
"""


def prepare_disk(folder: Path, node: EmulatedNode, public_key: str, definition: Definition) -> None:
    """Writes only into the upper layer, and only while it is not mounted."""
    upper = folder / "upper"
    for name in ("upper", "work", "root"):
        (folder / name).mkdir(parents=True, exist_ok=True, mode=0o755)
    for own in definition.own_folders:
        own_folder(folder, own).mkdir(parents=True, exist_ok=True)
    _write(upper / "root/.ssh/authorized_keys", public_key, 0o600)
    (upper / "root/.ssh").chmod(0o700)
    (upper / "root").chmod(0o700)
    host_key = folder / "host_key"
    _write(upper / "etc/ssh/ssh_host_ed25519_key", host_key.read_text(), 0o600)
    _write(upper / "etc/hostname", f"{node.name}\n", 0o644)
    _write(upper / INIT.lstrip("/"), INIT_SCRIPT, 0o755)
    if not (upper / "etc/machine-id").exists():
        _write(upper / "etc/machine-id", f"{uuid.uuid4().hex}\n", 0o444)


def own_folder(folder: Path, path: str) -> Path:
    return folder / "own" / path.strip("/").replace("/", "-")


def mount_disk(folder: Path, rootfs: Path) -> None:
    layers = f"lowerdir={rootfs},upperdir={folder / 'upper'},workdir={folder / 'work'}"
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", layers, str(folder / "root")], check=True)


def command(folder: Path, node: EmulatedNode, definition: Definition) -> list[str]:
    binds = [f"--bind={own_folder(folder, path)}:{path}" for path in definition.own_folders]
    binds += [f"--bind-ro={path}:{inside}" for inside, path in definition.shared_folders.items()]
    return [
        shutil.which("systemd-nspawn") or "systemd-nspawn",
        "--quiet",
        f"--directory={folder / 'root'}",
        f"--machine={node.name}",
        f"--network-namespace-path=/run/netns/{node.name}",
        "--register=no",
        "--keep-unit",
        "--console=pipe",
        "--link-journal=no",
        "--resolv-conf=off",
        "--timezone=off",
        # nspawn's own choice: no clock, modules, hardware, kernel log, locked memory or mandatory access
        # control. Containers in a node need networks of their own; the rest of what goes, nobody needs.
        "--capability=CAP_NET_ADMIN",
        f"--drop-capability={','.join(DROPPED)}",
        "--system-call-filter=@keyring",
        "--system-call-filter=bpf",
        # A kubelet insists on it; the machine's log is none of a node's business.
        "--bind=/dev/null:/dev/kmsg",
        f"--setenv=FOG_MEMORY_KB={node.memory_mb * 1024}",
        *binds,
        INIT,
    ]


def environment() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), "SYSTEMD_NSPAWN_API_VFS_WRITABLE": "network"}


def _write(path: Path, text: str, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
