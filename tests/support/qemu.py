"""A tiny machine with a kernel that has netem: Debian's cloud kernel under QEMU's software emulation, an
initramfs with busybox, tc and ping. It runs one script and prints; nothing of it is left afterwards."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from analysis.spark import cache_folder

PROGRAMS = (
    "qemu-system-x86_64",
    "busybox",
    "dash",
    "tc",
    "ip",
    "ping",
    "cpio",
    "depmod",
    "dpkg-deb",
    "apt-get",
)
MODULES = ("veth", "bridge", "sch_htb", "sch_netem", "cls_u32")
PACKAGE = "linux-image-cloud-amd64"
INIT = """\
#!/usr/bin/dash
/bin/busybox --install -s /bin
# Busybox has an ip, a tc and a ping of its own, and its shell would take them whatever the PATH says.
rm -f /bin/ip /bin/tc /bin/ping /bin/sh
ln -s /usr/bin/dash /bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t devtmpfs dev /dev; mount -t proc proc /proc; mount -t sysfs sys /sys
mount -t tmpfs tmpfs /run; mount -t tmpfs tmpfs /tmp
echo 3 > /proc/sys/kernel/printk
for module in {modules}; do modprobe $module || echo "FAILED modprobe $module"; done
ip link set lo up
echo BEGIN
sh -eu /script || echo "FAILED script"
echo END
poweroff -f
"""


class QemuMissingError(Exception):
    """Something that the tiny machine needs is not here."""


def run_script(script: str, files: Mapping[str, str], timeout_s: float = 180.0) -> str:
    """What the script prints inside the machine; `files` are put there first."""
    for program in PROGRAMS:
        if _which(program) is None:
            raise QemuMissingError(f"{program} is not installed")
    kernel, modules = _kernel()
    with TemporaryDirectory() as folder:
        root = Path(folder) / "root"
        _fill(root, modules, {**files, "script": script})
        initramfs = Path(folder) / "initramfs"
        names = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
        with initramfs.open("wb") as file:
            subprocess.run(
                ["cpio", "-o", "-H", "newc", "--quiet"],
                input=names.encode(),
                stdout=file,
                cwd=root,
                check=True,
            )
        done = subprocess.run(
            # The guest's clock counts its instructions: what it measures does not depend on how busy this
            # machine is, and time in which it only waits passes at once.
            ["qemu-system-x86_64", "-accel", "tcg", "-icount", "shift=1,sleep=off", "-cpu", "max",
             "-m", "512", "-nographic", "-no-reboot", "-nodefaults", "-serial", "stdio",
             "-kernel", str(kernel), "-initrd", str(initramfs),
             "-append", "console=ttyS0 quiet panic=-1 mitigations=off"],
            capture_output=True, text=True, timeout=timeout_s, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
    inside = re.search(r"BEGIN\r?\n(.*)END", done.stdout, re.DOTALL)
    if inside is None or "FAILED" in done.stdout:
        raise AssertionError(f"the machine did not finish:\n{done.stdout[-3000:]}\n{done.stderr[-1000:]}")
    return inside.group(1).replace("\r\n", "\n")


def _which(program: str) -> str | None:
    return shutil.which(program, path="/usr/sbin:/usr/bin:/sbin:/bin")


def _kernel() -> tuple[Path, Path]:
    """Kernel and modules from Debian's package, unpacked once into the cache."""
    depends = subprocess.run(["apt-cache", "depends", PACKAGE], capture_output=True, text=True, check=False)
    match = re.search(r"Depends: (linux-image-\S+)", depends.stdout)
    if match is None:
        raise QemuMissingError(f"apt does not know {PACKAGE}")
    folder = cache_folder() / match.group(1)
    if not folder.exists():
        with TemporaryDirectory(dir=cache_folder()) as temporary:
            got = subprocess.run(
                ["apt-get", "download", match.group(1)], cwd=temporary, capture_output=True, check=False
            )
            packages = list(Path(temporary).glob("*.deb"))
            if got.returncode or not packages:
                raise QemuMissingError(f"{match.group(1)} cannot be downloaded")
            unpacked = Path(temporary) / "unpacked"
            subprocess.run(["dpkg-deb", "-x", str(packages[0]), str(unpacked)], check=True)
            unpacked.rename(folder)
    return next(folder.glob("boot/vmlinuz-*")), next(folder.glob("lib/modules/*"))


def _fill(root: Path, modules: Path, files: Mapping[str, str]) -> None:
    for name in ("bin", "dev", "proc", "sys", "run", "tmp", "etc"):
        (root / name).mkdir(parents=True)
    shutil.copy(_found("busybox"), root / "bin/busybox")
    for program in ("dash", "tc", "ip", "ping"):
        _copy_program(Path(_found(program)), root)
    _copy_modules(modules, root)
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    init = root / "init"
    init.write_text(INIT.format(modules=" ".join(MODULES)))
    init.chmod(0o755)


def _found(program: str) -> str:
    path = _which(program)
    assert path is not None
    return path


def _copy_program(program: Path, root: Path) -> None:
    """With the libraries it is linked to, at their own places."""
    libraries = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True).stdout
    for path in (str(program), *re.findall(r"(/\S+) \(0x", libraries)):
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)


def _copy_modules(modules: Path, root: Path) -> None:
    """The modules asked for and all that they need."""
    target = root / "lib/modules" / modules.name
    for module in _with_dependencies(modules, MODULES):
        path = target / module
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(modules / module, path)
    for listed in ("modules.order", "modules.builtin", "modules.builtin.modinfo"):
        shutil.copy(modules / listed, target / listed)
    subprocess.run([_found("depmod"), "-b", str(root), modules.name], check=True)


def _with_dependencies(modules: Path, names: Iterable[str]) -> set[str]:
    with TemporaryDirectory() as folder:
        link = Path(folder) / "lib/modules"
        link.mkdir(parents=True)
        (link / modules.name).symlink_to(modules)
        listed = subprocess.run(
            [_found("depmod"), "-n", "-b", folder, modules.name], capture_output=True, text=True, check=True
        ).stdout
    depends = {
        line.split(":")[0]: line.split(":")[1].split()
        for line in listed.splitlines()
        if re.match(r"^kernel/\S+\.ko\S*:", line)
    }
    by_name = {Path(path).name.split(".")[0]: path for path in depends}
    found: set[str] = set()
    for name in names:
        if name in by_name:  # else it is built in
            found.update((by_name[name], *depends[by_name[name]]))
    return found
