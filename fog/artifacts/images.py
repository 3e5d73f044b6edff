"""Container images without a registry: archives of one layer that containerd imports, always the same."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fog.artifacts.builders import sum_of
from fogscale.errors import FogscaleError

# Documentation of packages is of no use in an image.
LEFT_OUT = ("/usr/share/doc/", "/usr/share/man/", "/usr/share/lintian/", "/usr/share/bug/")
# What Debian keeps as links at the root: packages list their files both with and without /usr.
MERGED = ("bin", "lib", "lib64", "sbin")


def write_image(
    name: str, options: Mapping[str, Any], folders: Mapping[str, Path], architecture: str, target: Path
) -> None:
    """`image.tar` in the target. `folders` are those of the artifacts it takes files from."""
    layer = target / "layer.tar"
    with tarfile.open(layer, "w", format=tarfile.PAX_FORMAT) as archive:
        if options.get("packages"):
            _add_packages(archive, folders["rootfs"], options["packages"])
        for inside, origin in sorted(options["files"].items()):
            for path, source in _files(name, str(inside), str(origin), folders):
                _add(archive, path, source)
    configuration = image_configuration(options, architecture, sum_of(layer))
    _write_archive(target / "image.tar", options["image"], configuration, layer)
    layer.unlink()


def image_configuration(options: Mapping[str, Any], architecture: str, layer_sha256: str) -> bytes:
    path = "PATH=/usr/local/bin:/usr/bin:/bin"
    environment = [f"{key}={value}" for key, value in options.get("environment", {}).items()]
    return json.dumps(
        {
            "architecture": architecture,
            "os": "linux",
            "config": {
                "Cmd": options.get("command", []),
                "Env": [path, *environment],
                "User": str(options.get("user", "")),
            },
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer_sha256}"]},
        },
        sort_keys=True,
    ).encode()


def _files(name: str, inside: str, origin: str, folders: Mapping[str, Path]) -> Iterator[tuple[str, Path]]:
    """`artifact/pattern`: into a folder if `inside` ends with a slash, else under that very name."""
    part, _, pattern = origin.partition("/")
    found = sorted(folders[part].glob(pattern))
    if not found:
        raise FogscaleError(f"{origin} matches no file of the artifact {part}: fix 'files' of {name}")
    for path in found:
        place = f"{inside}{path.name}" if inside.endswith("/") else inside
        yield place, path
        if path.is_dir() and not path.is_symlink():
            yield from ((f"{place}/{each.relative_to(path)}", each) for each in sorted(path.rglob("*")))


def _add_packages(archive: tarfile.TarFile, root: Path, packages: Iterable[str]) -> None:
    paths = {path for package in packages for path in package_files(root, package)}
    links = [name for name in MERGED if (root / name).is_symlink()]
    for name in links:
        _add(archive, f"/{name}", root / name)
    for path in sorted(paths):
        first = path.lstrip("/").split("/")[0]
        if first in links or any(path.startswith(folder) for folder in LEFT_OUT):
            continue
        source = root / path.lstrip("/")
        if source.is_symlink() or source.exists():
            _add(archive, path, source)


def package_files(root: Path, package: str) -> set[str]:
    """As dpkg recorded them, with links at the root followed: /lib/x is /usr/lib/x."""
    info = root / "var/lib/dpkg/info"
    lists = [*info.glob(f"{package}.list"), *info.glob(f"{package}:*.list")]
    if not lists:
        raise FogscaleError(f"the nodes' root file system has no package {package}: fix 'packages'")
    found = set()
    for line in lists[0].read_text().splitlines():
        first = line.lstrip("/").split("/")[0]
        merged = first in MERGED and (root / first).is_symlink()
        found.add(f"/usr{line}" if merged else line)
    return found - {"/."}


def _add(archive: tarfile.TarFile, path: str, source: Path) -> None:
    """Owner, time and order say nothing of this machine."""
    entry = archive.gettarinfo(source, arcname=path.lstrip("/"))
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    if entry.isreg() or entry.islnk():
        entry.type, entry.linkname = tarfile.REGTYPE, ""
        entry.size = source.stat().st_size
        with source.open("rb") as stream:
            archive.addfile(entry, stream)
    else:
        archive.addfile(entry)


def _write_archive(target: Path, image: str, configuration: bytes, layer: Path) -> None:
    name = f"{hashlib.sha256(configuration).hexdigest()}.json"
    manifest = json.dumps([{"Config": name, "RepoTags": [image], "Layers": ["layer.tar"]}]).encode()
    with tarfile.open(target, "w") as archive:
        for member, content in ((name, configuration), ("manifest.json", manifest)):
            entry = tarfile.TarInfo(member)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
        entry = tarfile.TarInfo("layer.tar")
        entry.size = layer.stat().st_size
        with layer.open("rb") as stream:
            archive.addfile(entry, stream)
