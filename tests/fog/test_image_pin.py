"""An image is pulled by its tag once; what was behind it then is what all nodes pull from then on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fog.folders import checkout

TAG = "docker.io/library/flink:2.3.0-java17"
FIRST, MOVED = "a" * 64, "b" * 64
# A stand-in for containerd's client: there is no registry here.
CTR = """#!/bin/sh
echo "$@" >> {folder}/calls
case "$*" in
  *" pull "*) exit {code} ;;
  *" list "*) echo "REF TYPE DIGEST"; echo "{tag} application/index sha256:$(cat {folder}/digest) 400 MiB" ;;
esac
"""
PLAY = """
- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.include_role: {{name: flink, tasks_from: pin}}
      vars: {{flink_ctr: {folder}/ctr, flink_image_tag: "{tag}", flink_image_pin: "{folder}/pin"}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "digest").write_text(FIRST)
    (tmp_path / "play.yml").write_text(PLAY.format(folder=tmp_path, tag=TAG))
    return tmp_path


def played(folder: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    (folder / "ctr").write_text(CTR.format(folder=folder, tag=TAG, code=code))
    (folder / "ctr").chmod(0o755)
    command = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", "localhost,", "-c", "local"]
    ready = {"ansible_python_interpreter": sys.executable, "ansible_become": False}
    return subprocess.run(
        [*command, "-e", json.dumps(ready), str(folder / "play.yml")],
        cwd=checkout(),
        env={**os.environ, "ANSIBLE_RETRIES": "0"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_digest_behind_the_tag_is_remembered_and_not_asked_for_again(folder: Path) -> None:
    done = played(folder)
    assert done.returncode == 0, done.stdout
    assert (folder / "pin").read_text() == f"docker.io/library/flink@sha256:{FIRST}"
    (folder / "digest").write_text(MOVED)
    again = played(folder)
    assert "changed=0" in again.stdout
    assert (folder / "pin").read_text() == f"docker.io/library/flink@sha256:{FIRST}"
    assert [line.split()[3] for line in (folder / "calls").read_text().splitlines()] == ["pull", "list"]
