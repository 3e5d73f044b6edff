"""What a testbed is made of besides Debian's packages: made once, in a folder named after its content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from fog.artifacts import builders, rootfs
from fog.artifacts.cache import make_once
from fog.artifacts.images import write_image
from fogscale.errors import FogscaleError, unknown

RECIPE = 1  # raised when what the builders do changes
CATALOGUE = "playbooks/vars/artifacts.yml"
ROOTFS = "rootfs"  # the nodes' root file system, listed with the artifacts
ROOTFS_MIN = 1.0  # how long it usually takes on two cores
SOON_MIN = 0.2  # what the others take, for which the catalogue says nothing
# Kind → keys that must be there, keys that may be. All have `kind` and `version`, and may have `usual_min`.
SHAPES: Mapping[str, tuple[set[str], set[str]]] = {
    "go": ({"source", "program"}, {"package", "tags", "variables"}),
    "maven": ({"source"}, set()),
    "java": ({"source"}, set()),
    "wheel": ({"package", "sha256", "keep"}, set()),
    "image": ({"image", "files"}, {"packages", "command", "environment", "user"}),
    "release": ({"files"}, set()),
}


@dataclass(frozen=True)
class Artifact:
    name: str
    kind: str
    version: str
    options: Mapping[str, Any]
    usual_min: float = SOON_MIN  # how long it usually takes on two cores

    @property
    def parts(self) -> tuple[str, ...]:
        """Other artifacts that go into it: an image's files come from `artifact/pattern`."""
        files = self.options.get("files", {}) if self.kind == "image" else {}
        return tuple(sorted({str(origin).split("/")[0] for origin in files.values()}))


def read(file: Path) -> dict[str, Artifact]:
    try:
        values = yaml.safe_load(file.read_text())["artifacts"]
    except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
        raise FogscaleError(f"{file} has no list of artifacts ({error}): fix or restore it") from None
    return {str(name): _artifact(file, str(name), entry) for name, entry in values.items()}


def _artifact(file: Path, name: str, entry: Any) -> Artifact:
    where = f"{file}: artifact {name}"
    if not isinstance(entry, dict) or str(entry.get("kind")) not in SHAPES:
        kind = str(entry.get("kind", "")) if isinstance(entry, dict) else ""
        raise FogscaleError(f"{where}: {unknown('kind', kind, SHAPES)}")
    needed, possible = SHAPES[entry["kind"]]
    missing = sorted(({"version"} | needed) - set(entry))
    if missing:
        raise FogscaleError(f"{where}: write its {' and '.join(missing)}")
    for key in entry:
        if key not in needed | possible | {"kind", "version", "usual_min"}:
            raise FogscaleError(f"{where}: {unknown('key', str(key), needed | possible | {'usual_min'})}")
    # How long it takes is no part of what it is, so no option: the cache would be made anew.
    options = {key: value for key, value in entry.items() if key not in ("kind", "version", "usual_min")}
    usual_min = entry.get("usual_min", SOON_MIN)
    if isinstance(usual_min, bool) or not isinstance(usual_min, int | float) or usual_min <= 0:
        raise FogscaleError(f"{where}: usual_min is '{usual_min}': write a number of minutes")
    return Artifact(name, entry["kind"], str(entry["version"]), options, float(usual_min))


@dataclass(frozen=True)
class Store:
    """The cache, for nodes of one architecture."""

    catalogue: Mapping[str, Artifact]
    project: Path  # sources are named relative to it
    cache: Path
    architecture: str  # as Debian and Go call it: amd64, arm64
    rootfs: rootfs.Recipe

    def artifact(self, name: str) -> Artifact:
        if name not in self.catalogue:
            raise FogscaleError(f"{CATALOGUE}: {unknown('artifact', name, self.catalogue)}")
        return self.catalogue[name]

    def folder(self, name: str) -> Path:
        if name == ROOTFS:
            return self.rootfs.folder(self.cache)
        return self.cache / f"{name}-{self._key(self.artifact(name))}"

    def _key(self, artifact: Artifact) -> str:
        """The same for the same content: over every source, every option and every part."""
        content: dict[str, Any] = {
            "options": {key: value for key, value in artifact.options.items() if key != "source"},
            "version": artifact.version,
            "kind": artifact.kind,
            "recipe": RECIPE,
            "parts": {part: self.folder(part).name for part in artifact.parts},
        }
        if "source" in artifact.options:
            content["source"] = _sums(self.project / artifact.options["source"])
        if artifact.kind in ("go", "image"):  # jars and what a wheel holds of Java run anywhere
            content["architecture"] = self.architecture
        if artifact.options.get("packages"):
            content["rootfs"] = self.rootfs.key
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]

    def ensure(self, name: str) -> tuple[Path, bool]:
        """The folder, and whether it had to be made."""
        if name == ROOTFS:
            return rootfs.ensure(self.rootfs, self.cache)
        artifact, folder = self.artifact(name), self.folder(name)
        if artifact.kind == "release":
            raise FogscaleError(f"{name} is a published release: the role that uses it downloads it")
        if folder.is_dir():
            return folder, False
        for part in self._parts_of(artifact):
            self.ensure(part)
        return folder, make_once(folder, lambda target: self._make(artifact, target))

    def check_tools(self, name: str) -> None:
        """For what has to be made: better now than after the minutes that others take."""
        if self.folder(name).is_dir():
            return
        if name == ROOTFS:
            rootfs.check_tools()
            return
        artifact = self.artifact(name)
        for part in self._parts_of(artifact):
            self.check_tools(part)
        with _named(artifact):
            if artifact.kind == "go":
                builders.find_go(self.project / artifact.options["source"])
            elif artifact.kind in ("maven", "java"):
                builders.find_maven()
            if artifact.kind == "java":
                builders.check_java_compiler()

    def parts(self, name: str) -> tuple[str, ...]:
        """What has to be there before it can be made."""
        return () if name == ROOTFS else self._parts_of(self.artifact(name))

    def _parts_of(self, artifact: Artifact) -> tuple[str, ...]:
        return (*((ROOTFS,) if artifact.options.get("packages") else ()), *artifact.parts)

    def _make(self, artifact: Artifact, target: Path) -> None:
        options = artifact.options
        target.mkdir()
        with _named(artifact):
            if artifact.kind == "go":
                builders.build_program(
                    self.project / options["source"], target / options["program"], self.architecture,
                    options.get("package", "."), options.get("tags", ()), options.get("variables", {}),
                )  # fmt: skip
            elif artifact.kind == "maven":
                builders.fetch_jars(self.project / options["source"], target)
            elif artifact.kind == "java":
                builders.build_jar(self.project / options["source"], target)
            elif artifact.kind == "wheel":
                builders.fetch_wheel(
                    options["package"], artifact.version, options["sha256"], options["keep"], target
                )
            else:
                folders = {part: self.folder(part) for part in self._parts_of(artifact)}
                write_image(artifact.name, options, folders, self.architecture, target)


@contextmanager
def _named(artifact: Artifact) -> Iterator[None]:
    try:
        yield
    except FogscaleError as error:
        raise FogscaleError(f"artifact {artifact.name}: {error}") from None


def _sums(folder: Path) -> dict[str, str]:
    if not folder.is_dir():
        raise FogscaleError(f"{folder} does not exist: fix the source in {CATALOGUE}")
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def store(project: Path, cache: Path, architecture: str | None = None) -> Store:
    """That of the checkout `project`; for nodes like this machine, unless said otherwise."""
    values = yaml.safe_load((project / "roles/emulated_nodes/defaults/main.yml").read_text())
    recipe = rootfs.Recipe(
        values["emulated_nodes_suite"],
        rootfs.packages_of(values["emulated_nodes_packages"]),
        tuple(values["emulated_nodes_disabled_units"]),
        values["emulated_nodes_mirror"],
    )
    known = sorted(rootfs.ARCHITECTURES.values())
    if architecture is not None and architecture not in known:
        raise FogscaleError(unknown("architecture", architecture, known))
    return Store(read(project / CATALOGUE), project, cache, architecture or recipe.architecture, recipe)


@dataclass(frozen=True)
class Work:
    """One artifact that has to be made, and how far that is of all that have to."""

    name: str
    place: int  # from 1
    of: int
    usual_min: float
    left_min: float  # usually, with those that come after it

    def __str__(self) -> str:
        later = (
            ""
            if self.place == self.of
            else f"; then {self.of - self.place} more, {_about(self.left_min)} in all"
        )
        return f"{self.name} ({self.place} of {self.of}), {_about(self.usual_min)}{later}"


def _about(minutes: float) -> str:
    return "under a minute" if minutes < 1 else f"about {minutes:.0f} min"


def missing(store: Store, names: Sequence[str]) -> list[Work]:
    """What has to be made for these, parts before what they go into."""
    wanted: dict[str, float] = {}

    def look(name: str) -> None:
        if name in wanted or store.folder(name).is_dir():
            return
        for part in store.parts(name):
            look(part)
        wanted[name] = ROOTFS_MIN if name == ROOTFS else store.artifact(name).usual_min

    for name in names:
        look(name)
    usual = list(wanted.items())
    return [
        Work(name, place + 1, len(usual), minutes, sum(later for _, later in usual[place:]))
        for place, (name, minutes) in enumerate(usual)
    ]


def collect(
    store: Store, names: Sequence[str], during: Callable[[Work], AbstractContextManager[object]] = nullcontext
) -> tuple[dict[str, Path], list[str]]:
    """The folder of each, and which had to be made. One after the other: each build uses all cores. `during`
    is entered for everything that is made, for as long as that takes."""
    for name in names:
        store.check_tools(name)
    made = []
    for work in missing(store, names):
        with during(work):
            made += [work.name] if store.ensure(work.name)[1] else []
    return {name: store.ensure(name)[0] for name in names}, made


def buildable(catalogue: Mapping[str, Artifact]) -> list[str]:
    return [name for name, artifact in catalogue.items() if artifact.kind != "release"]
