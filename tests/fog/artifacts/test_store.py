"""Artifacts are made once per content, wholly or not at all, and never with a wrong sum."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from fog.artifacts import builders
from fog.artifacts.builders import check_jars, sum_of, unpack
from fog.artifacts.images import package_files, write_image
from fog.artifacts.rootfs import Recipe
from fog.artifacts.store import Artifact, Store, Work, buildable, collect, missing, read, store
from fog.folders import checkout
from fogscale.errors import FogscaleError

PROGRAM = 'package main\n\nvar greeting = "nobody"\n\nfunc main() { println(greeting) }\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    source = tmp_path / "project/hello"
    source.mkdir(parents=True)
    (source / "main.go").write_text(PROGRAM)
    (source / "go.mod").write_text("module hello\n\ngo 1.21\n")
    return tmp_path / "project"


def of(project: Path, architecture: str = "amd64", **options: object) -> Store:
    values = {"source": "hello", "program": "hello", **options}
    hello = Artifact("hello", "go", "1", values)
    image = Artifact(
        "box", "image", "1", {"image": "local/box:1", "files": {"/bin/hello": "hello/hello"}, "user": "7"}
    )
    recipe = Recipe("bookworm", ("systemd",))
    return Store({"hello": hello, "box": image}, project, project.parent / "cache", architecture, recipe)


@pytest.fixture
def needs_go(require: Callable[[str, bool, str], None]) -> None:
    require("go", shutil.which("go") is not None, "no Go toolchain")


@pytest.fixture
def needs_java(require: Callable[[str, bool, str], None]) -> None:
    missing = [program for program in ("mvn", "javac", "java") if shutil.which(program) is None]
    require("java", not missing, f"no {' and no '.join(missing)}")


def test_the_key_changes_with_every_source_option_and_architecture(project: Path) -> None:
    first = of(project).folder("hello")
    assert of(project).folder("hello") == first
    assert of(project, tags=["x"]).folder("hello") != first
    assert of(project, architecture="arm64").folder("hello") != first
    box = of(project).folder("box")
    (project / "hello/main.go").write_text(PROGRAM.replace("nobody", "all"))
    assert of(project).folder("hello") != first
    assert of(project).folder("box") != box  # it holds the program


@pytest.mark.usefixtures("needs_go")
def test_a_program_is_built_once_and_says_what_it_was_built_with(project: Path) -> None:
    shelf = of(project, variables={"main.greeting": "fog"})
    folder, made = shelf.ensure("hello")
    assert made
    told = subprocess.run([str(folder / "hello")], capture_output=True, text=True, check=True).stderr
    assert told == "fog\n"
    assert shelf.ensure("hello") == (folder, False)
    assert sorted(path.name for path in shelf.cache.iterdir()) == [folder.name, f"{folder.name}.lock"]


@pytest.mark.usefixtures("needs_go")
def test_a_program_for_other_nodes_is_of_their_architecture(project: Path) -> None:
    folder, _ = of(project, architecture="arm64").ensure("hello")
    header = (folder / "hello").read_bytes()[:20]
    assert header[:4] == b"\x7fELF"
    assert int.from_bytes(header[18:20], "little") == 183  # EM_AARCH64


@pytest.mark.usefixtures("needs_go")
def test_a_broken_build_leaves_nothing_and_names_the_artifact(project: Path) -> None:
    (project / "hello/main.go").write_text("package main\n\nfunc main() { no() }\n")
    shelf = of(project)
    with pytest.raises(
        FogscaleError, match=r"artifact hello: Go could not build it .*undefined: no\): fix its"
    ):
        shelf.ensure("hello")
    assert [path.suffix for path in shelf.cache.iterdir()] == [".lock"]
    (project / "hello/main.go").write_text(PROGRAM)
    assert shelf.ensure("hello")[1]


@pytest.mark.usefixtures("needs_go")
@pytest.mark.parametrize(
    ("proxy", "words"),
    [
        ("file://{proxy}", r"example.org/dep@v1.0.0: checksum mismatch\): do not use it; if its version was"),
        ("off", r"module lookup disabled by GOPROXY=off\): check the network and the registries' settings"),
    ],
)
def test_a_module_with_another_sum_or_without_a_way_to_it_is_not_used(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proxy: str, words: str
) -> None:
    """Go finds the module in a folder, as it would at a proxy."""
    published = tmp_path / "proxy/example.org/dep/@v"
    published.mkdir(parents=True)
    module = "module example.org/dep\n"
    (published / "v1.0.0.info").write_text('{"Version": "v1.0.0"}')
    (published / "v1.0.0.mod").write_text(module)
    with zipfile.ZipFile(published / "v1.0.0.zip", "w") as archive:
        archive.writestr("example.org/dep@v1.0.0/go.mod", module)
        archive.writestr("example.org/dep@v1.0.0/dep.go", "package dep\n")
    hello = project / "hello"
    (hello / "main.go").write_text(PROGRAM.replace("\n\n", '\n\nimport _ "example.org/dep"\n\n', 1))
    (hello / "go.mod").write_text("module hello\n\ngo 1.21\n\nrequire example.org/dep v1.0.0\n")
    sum_of_another = f"h1:{base64.b64encode(bytes(32)).decode()}"
    lines = [f"example.org/dep v1.0.0{part} {sum_of_another}\n" for part in ("", "/go.mod")]
    (hello / "go.sum").write_text("".join(lines))
    monkeypatch.setenv("GOPROXY", proxy.format(proxy=tmp_path / "proxy"))
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "modules"))
    with pytest.raises(FogscaleError, match=words):
        of(project).ensure("hello")


@pytest.mark.usefixtures("needs_go")
def test_what_an_interrupted_build_left_is_not_taken_for_done(project: Path) -> None:
    shelf = of(project)
    left = shelf.cache / f"{shelf.folder('hello').name}.unfinished"
    left.mkdir(parents=True)
    (left / "hello").write_text("half")
    assert shelf.ensure("hello")[1]
    assert not left.exists()


@pytest.mark.parametrize(
    ("version", "words"),
    [("go1.20.3", "is go1.20.3: install Go 1.21"), ("", "is not a Go toolchain: install Go 1.21")],
)
def test_a_toolchain_that_is_too_old_is_refused_in_words(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, words: str
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "go").write_text(f"#!/bin/sh\necho {version}\n")
    (programs / "go").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    with pytest.raises(FogscaleError, match=words):
        of(project).ensure("hello")


def test_without_go_it_says_how_to_get_it(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(builders.sys, "executable", str(tmp_path / "python"))
    with pytest.raises(FogscaleError, match=r"Go is not installed: install Go 1.21 or newer"):
        of(project).ensure("hello")


def test_a_tool_that_the_last_artifact_lacks_is_missed_before_the_first_is_built(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here for an image, of which Go is to build a part."""
    pause = Artifact("pause", "image", "1", {"image": "local/pause:1", "files": {}})
    shelf = of(project)
    shelf = replace(shelf, catalogue={"pause": pause, **shelf.catalogue})
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(builders.sys, "executable", str(tmp_path / "python"))
    with pytest.raises(FogscaleError, match="artifact hello: Go is not installed"):
        collect(shelf, ["pause", "box"])
    assert not shelf.cache.exists()


@pytest.mark.usefixtures("needs_go")
def test_what_is_missing_is_told_before_it_is_made_parts_first_and_how_far_it_is(project: Path) -> None:
    shelf = of(project)
    slow = replace(shelf.catalogue["hello"], usual_min=7.0)
    shelf = replace(shelf, catalogue={**shelf.catalogue, "hello": slow})
    told: list[str] = []

    @contextmanager
    def during(work: Work) -> Iterator[None]:
        assert not shelf.folder(work.name).exists()
        told.append(str(work))
        yield
        assert shelf.folder(work.name).is_dir()

    folders, made = collect(shelf, ["box", "hello"], during)
    assert told == [
        "hello (1 of 2), about 7 min; then 1 more, about 7 min in all",
        "box (2 of 2), under a minute",
    ]
    assert made == ["hello", "box"]
    assert folders == {"box": shelf.folder("box"), "hello": shelf.folder("hello")}
    assert missing(shelf, ["box", "hello"]) == []
    assert collect(shelf, ["box"], during)[1] == []
    assert len(told) == 2


def test_how_long_it_takes_is_no_part_of_what_it_is(tmp_path: Path) -> None:
    """Else a new estimate would cost everybody the minutes it speaks of."""
    entry = {"kind": "wheel", "version": 1, "package": "x", "sha256": "0", "keep": ["*"]}
    folders = set()
    for usual in ({}, {"usual_min": 3}, {"usual_min": 9}):
        file = tmp_path / "artifacts.yml"
        file.write_text(yaml.safe_dump({"artifacts": {"thing": entry | usual}}))
        folders.add(replace(of(tmp_path), catalogue=read(file)).folder("thing"))
    assert len(folders) == 1
    assert read(file)["thing"].usual_min == 9


def test_a_jar_with_another_sum_is_named(tmp_path: Path) -> None:
    for name in ("a.jar", "b.jar"):
        (tmp_path / name).write_text(name)
    sums = tmp_path / "jars.sha256"
    lines = [f"{hashlib.sha256(name.encode()).hexdigest()}  {name}" for name in ("a.jar", "b.jar")]
    sums.write_text("\n".join(lines) + "\n")
    check_jars(tmp_path, sums)
    (tmp_path / "b.jar").write_text("other")
    with pytest.raises(FogscaleError, match=r"^b.jar has the SHA-256 d9298a"):
        check_jars(tmp_path, sums)
    (tmp_path / "b.jar").unlink()
    with pytest.raises(FogscaleError, match=r"b.jar .* it is missing"):
        check_jars(tmp_path, sums)
    (tmp_path / "b.jar").write_text("b.jar")
    (tmp_path / "c.jar").touch()
    with pytest.raises(FogscaleError, match=r"c.jar .* says nothing of it"):
        check_jars(tmp_path, sums)


@pytest.mark.usefixtures("needs_java")
def test_a_jar_is_built_from_its_sources_the_same_every_time_and_leaves_them_as_they_are(
    tmp_path: Path,
) -> None:
    source = tmp_path / "hello"
    (source / "src/main/java").mkdir(parents=True)
    pom = (checkout() / "roles/flink/files/placement/pom.xml").read_text()
    (source / "pom.xml").write_text(re.sub(r"<dependencies>.*</dependencies>", "", pom, flags=re.DOTALL))
    hello = "class Hello { public static void main(String[] none) { System.out.println(%s); } }"
    (source / "src/main/java/Hello.java").write_text(hello % '"fog"')
    (source / "src/main/resources").mkdir()
    (source / "src/main/resources/word").write_text("beside the classes")
    files = sorted(source.rglob("*"))
    sums = set()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        builders.build_jar(source, tmp_path / name)
        (jar,) = (tmp_path / name).iterdir()
        sums.add(sum_of(jar))
    assert len(sums) == 1
    told = subprocess.run(["java", "-cp", str(jar), "Hello"], capture_output=True, text=True, check=True)
    assert told.stdout == "fog\n"
    with zipfile.ZipFile(jar) as packed:
        assert packed.read("word") == b"beside the classes"
    assert sorted(source.rglob("*")) == files
    (source / "src/main/java/Hello.java").write_text(hello % "fog")
    with pytest.raises(FogscaleError, match=r"Maven could not build it \(.*Hello.java.*\): fix its sources"):
        builders.build_jar(source, tmp_path)
    (source / ".mvn").mkdir()
    (source / ".mvn/maven.config").write_text(f"--offline\n-Dmaven.repo.local={tmp_path / 'nothing'}\n")
    with pytest.raises(FogscaleError, match=r"Maven could not build it \(.*offline.*\): check the network"):
        builders.build_jar(source, tmp_path)


def test_without_a_java_compiler_it_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FogscaleError, match="no Java compiler: apt-get install default-jdk-headless"):
        builders.build_jar(tmp_path, tmp_path)


def test_a_wheel_with_another_sum_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pip finds it in a folder, as it would in an index."""
    wheel = tmp_path / "links/thing-1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("thing/lib/a.jar", "jar")
        archive.writestr("thing-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n")
        archive.writestr("thing-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("thing-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    target = tmp_path / "target"
    with pytest.raises(FogscaleError, match=r"thing-1.0-py3-none-any.whl has the SHA-256 .*, not 00"):
        builders.fetch_wheel("thing", "1.0", "00", ["thing/lib/*"], target)
    assert not target.exists()
    builders.fetch_wheel("thing", "1.0", sum_of(wheel), ["thing/lib/*"], target)
    assert [path.name for path in target.rglob("*.*")] == ["a.jar"]
    with pytest.raises(FogscaleError, match="has no thing/opt/"):
        unpack(wheel, ["thing/opt/*"], target)
    with pytest.raises(FogscaleError, match="pip could not fetch it"):
        builders.fetch_wheel("thing", "2.0", "00", ["*"], target)


def test_an_image_holds_the_files_and_is_the_same_every_time(tmp_path: Path) -> None:
    root, part = tmp_path / "rootfs", tmp_path / "part"
    (root / "usr/lib").mkdir(parents=True)
    (root / "lib").symlink_to("usr/lib")
    (root / "usr/lib/libc.so").write_text("c")
    (root / "var/lib/dpkg/info").mkdir(parents=True)
    # Debian's packages still name files by the link at the root.
    (root / "var/lib/dpkg/info/libc6:amd64.list").write_text("/.\n/lib\n/lib/libc.so\n")
    part.mkdir()
    for name in ("b.jar", "a.jar"):
        (part / name).write_text(name)
    options = {
        "image": "local/x:1",
        "packages": ["libc6"],
        "files": {"/opt/": "part/*.jar"},
        "command": ["/x"],
    }
    sums = set()
    for number in range(2):
        target = tmp_path / str(number)
        target.mkdir()
        write_image("x", options, {"rootfs": root, "part": part}, "arm64", target)
        sums.add(sum_of(target / "image.tar"))
    assert len(sums) == 1
    assert package_files(root, "libc6") == {"/usr/lib", "/usr/lib/libc.so"}
    with tarfile.open(tmp_path / "0/image.tar") as archive:
        (manifest,) = json.load(archive.extractfile("manifest.json"))  # type: ignore[arg-type]
        configuration = archive.extractfile(manifest["Config"]).read()  # type: ignore[union-attr]
        layer = archive.extractfile("layer.tar").read()  # type: ignore[union-attr]
    # Content addressed: the name of the configuration and the digest in it are what a reader checks.
    assert manifest["Config"] == f"{hashlib.sha256(configuration).hexdigest()}.json"
    assert json.loads(configuration)["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}"]
    (tmp_path / "layer.tar").write_bytes(layer)
    with tarfile.open(tmp_path / "layer.tar") as archive:
        assert archive.getnames() == ["lib", "usr/lib", "usr/lib/libc.so", "opt/a.jar", "opt/b.jar"]
        assert archive.getmember("lib").linkname == "usr/lib"
    with pytest.raises(FogscaleError, match="part/c matches no file"):
        write_image(
            "x", {**options, "files": {"/c": "part/c"}}, {"rootfs": root, "part": part}, "arm64", part
        )


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"kind": "golang"}, "unknown kind 'golang'"),
        ({"kind": "go", "version": 1, "program": "x"}, "write its source"),
        ({"kind": "maven", "version": 1, "source": "x", "sorce": "y"}, "did you mean source"),
        ("go", "unknown kind"),
        ({"kind": "maven", "version": 1, "source": "x", "usual_min": "long"}, "write a number of minutes"),
    ],
)
def test_a_wrong_entry_is_refused_in_words(tmp_path: Path, entry: object, words: str) -> None:
    file = tmp_path / "artifacts.yml"
    file.write_text(yaml.safe_dump({"artifacts": {"thing": entry}}))
    with pytest.raises(FogscaleError, match=f"artifact thing: .*{words}"):
        read(file)


def test_the_catalogue_names_sources_that_exist_and_parts_that_are_known(tmp_path: Path) -> None:
    shelf = store(checkout(), tmp_path)
    names = buildable(shelf.catalogue)
    assert {"kubernetes", "coredns", "pause_image"} <= set(names)
    for name in names:
        assert shelf.folder(name).parent == tmp_path  # reads every source and every part
    with pytest.raises(FogscaleError, match="did you mean coredns"):
        collect(shelf, ["corends"])


def test_every_go_artifact_pins_its_version_and_the_sums_of_its_modules() -> None:
    for artifact in read(checkout() / "playbooks/vars/artifacts.yml").values():
        if artifact.kind != "go" or artifact.version == "1":  # our own, without modules of others
            continue
        folder = checkout() / artifact.options["source"]
        when = "".join(filter(str.isdigit, artifact.version))  # as in the version of an untagged module
        pinned = artifact.version if artifact.version.startswith("v") else f"-{when}-"
        assert pinned in (folder / "go.mod").read_text()
        assert (folder / "go.sum").stat().st_size > 0
