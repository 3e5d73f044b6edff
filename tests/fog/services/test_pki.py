"""Certificates that OpenSSL accepts, made anew only when they must be."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fog.services.pki import (
    Certificate,
    ensure,
    ensure_keystore,
    ensure_truststore,
    kubeconfig,
    write_private,
)
from fogscale.errors import FogscaleError

NODE = Certificate("node-fog1", "system:node:fog1", "system:nodes", ("fog1", "10.77.0.11"))
USER = Certificate("admin", "someone", "system:masters")


def openssl(*arguments: str) -> str:
    return subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=True).stdout


def test_the_authority_vouches_for_users_and_for_hosts_by_name_and_address(tmp_path: Path) -> None:
    assert ensure(tmp_path, [NODE, USER]) == ["ca", "tokens", "node-fog1", "admin"]
    node, authority = str(tmp_path / "node-fog1.crt"), str(tmp_path / "ca.crt")
    for arguments in (["-verify_hostname", "fog1"], ["-verify_ip", "10.77.0.11"], ["-purpose", "sslserver"]):
        assert openssl("verify", "-CAfile", authority, *arguments, node) == f"{node}: OK\n"
    subject = openssl("x509", "-noout", "-subject", "-in", node)
    assert "O = system:nodes" in subject
    assert "CN = system:node:fog1" in subject


def test_a_user_cannot_pass_for_a_server(tmp_path: Path) -> None:
    ensure(tmp_path, [USER])
    command = ["openssl", "verify", "-purpose", "sslserver", "-CAfile", str(tmp_path / "ca.crt")]
    done = subprocess.run([*command, str(tmp_path / "admin.crt")], capture_output=True, check=False)
    assert done.returncode != 0


def test_nothing_is_made_twice_but_what_changed_or_runs_out(tmp_path: Path) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    ensure(tmp_path, [NODE, USER], now)
    assert ensure(tmp_path, [NODE, USER], now) == []
    moved = Certificate(NODE.name, NODE.common_name, NODE.organization, ("fog1", "10.77.0.12"))
    assert ensure(tmp_path, [moved, USER], now) == ["node-fog1"]
    assert ensure(tmp_path, [moved, USER], now + timedelta(days=340)) == ["node-fog1", "admin"]
    (tmp_path / "admin.key").unlink()
    assert ensure(tmp_path, [USER], now + timedelta(days=340)) == ["admin"]


def test_a_renewal_that_was_cut_off_between_key_and_certificate_is_made_again(tmp_path: Path) -> None:
    ensure(tmp_path, [NODE, USER])
    shutil.copy(tmp_path / "admin.key", tmp_path / "node-fog1.key")
    assert ensure(tmp_path, [NODE, USER]) == ["node-fog1"]
    key = openssl("pkey", "-pubout", "-in", str(tmp_path / "node-fog1.key"))
    assert key == openssl("x509", "-pubkey", "-noout", "-in", str(tmp_path / "node-fog1.crt"))


@pytest.mark.parametrize("name", ["ca.crt", "ca.key", "node-fog1.crt", "node-fog1.key"])
def test_what_is_damaged_is_made_again(tmp_path: Path, name: str) -> None:
    ensure(tmp_path, [NODE])
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:40])
    made = ["ca", "node-fog1"] if name.startswith("ca") else ["node-fog1"]
    assert ensure(tmp_path, [NODE]) == made
    assert ensure(tmp_path, [NODE]) == []
    node, authority = str(tmp_path / "node-fog1.crt"), str(tmp_path / "ca.crt")
    assert openssl("verify", "-CAfile", authority, node) == f"{node}: OK\n"


def test_an_authority_that_would_end_before_its_certificates_is_made_anew(tmp_path: Path) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    ensure(tmp_path, [NODE], now)
    assert ensure(tmp_path, [NODE], now + timedelta(days=3650 - 364)) == ["ca", "node-fog1"]


def test_a_certificate_of_a_clock_that_was_ahead_is_made_anew(tmp_path: Path) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    ensure(tmp_path, [], now)
    ensure(tmp_path, [NODE], now + timedelta(days=2))
    assert ensure(tmp_path, [NODE], now + timedelta(days=1)) == ["node-fog1"]


def test_a_clock_that_went_back_before_the_authority_is_told(tmp_path: Path) -> None:
    ensure(tmp_path, [NODE], datetime(2026, 1, 1, tzinfo=UTC))
    with pytest.raises(FogscaleError, match=r"31 December 2025.*set the clock"):
        ensure(tmp_path, [NODE], datetime(1970, 1, 1, tzinfo=UTC))


def test_another_authority_makes_all_certificates_anew(tmp_path: Path) -> None:
    ensure(tmp_path, [NODE])
    (tmp_path / "ca.crt").unlink()
    assert ensure(tmp_path, [NODE]) == ["ca", "node-fog1"]
    openssl("verify", "-CAfile", str(tmp_path / "ca.crt"), str(tmp_path / "node-fog1.crt"))


def test_a_certificate_of_another_authority_does_not_count_however_it_came_there(tmp_path: Path) -> None:
    """As after a crash between a new authority and the certificates it was to sign."""
    old, new = tmp_path / "old", tmp_path / "new"
    ensure(old, [NODE, USER])
    ensure(new, [])
    for name in ("node-fog1.crt", "node-fog1.key"):
        shutil.copy(old / name, new / name)
    assert ensure(new, [NODE]) == ["node-fog1"]
    openssl("verify", "-CAfile", str(new / "ca.crt"), str(new / "node-fog1.crt"))


def test_only_their_owner_can_read_them(tmp_path: Path) -> None:
    folder = tmp_path / "secrets" / "kubernetes"
    ensure(folder, [NODE])
    assert {each.stat().st_mode & 0o777 for each in (folder.parent, folder)} == {0o700}
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


def test_a_kubeconfig_carries_the_user_and_the_authority(tmp_path: Path) -> None:
    ensure(tmp_path, [USER])
    values = json.loads(kubeconfig(tmp_path, "admin", "https://10.77.0.1:6443"))
    user, cluster = values["users"][0]["user"], values["clusters"][0]["cluster"]
    assert base64.b64decode(user["client-key-data"]) == (tmp_path / "admin.key").read_bytes()
    assert base64.b64decode(cluster["certificate-authority-data"]) == (tmp_path / "ca.crt").read_bytes()
    assert write_private(tmp_path / "kubeconfig", "x")
    assert not write_private(tmp_path / "kubeconfig", "x")
    assert write_private(tmp_path / "kubeconfig", "y")


def test_who_only_serves_opens_no_door_of_others(tmp_path: Path) -> None:
    ensure(tmp_path, [Certificate("web", "web", hosts=("fog1",), is_client=False)], tokens=False)
    authority, certificate = str(tmp_path / "ca.crt"), str(tmp_path / "web.crt")
    openssl("verify", "-purpose", "sslserver", "-CAfile", authority, certificate)
    done = subprocess.run(
        ["openssl", "verify", "-purpose", "sslclient", "-CAfile", authority, certificate],
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert not (tmp_path / "tokens.key").exists()


def test_a_certificate_for_other_uses_is_made_anew(tmp_path: Path) -> None:
    ensure(tmp_path, [Certificate("web", "web", hosts=("fog1",))])
    assert ensure(tmp_path, [Certificate("web", "web", hosts=("fog1",), is_client=False)]) == ["web"]


def test_java_reads_a_keystore_and_whom_to_trust(tmp_path: Path) -> None:
    ensure(tmp_path, [NODE], tokens=False)
    assert ensure_keystore(tmp_path, NODE.name, "a-password")
    for end, kind in (("", "PrivateKeyEntry"), ("-trust", "trustedCertEntry")):
        store = tmp_path / f"store{end}.p12"
        store.write_bytes(base64.b64decode((tmp_path / f"{NODE.name}{end}.p12.b64").read_bytes()))
        keytool = ["keytool", "-list", "-keystore", str(store), "-storepass", "a-password"]
        assert kind in subprocess.run(keytool, capture_output=True, text=True, check=True).stdout


def test_a_keystore_is_made_anew_with_its_certificate_only(tmp_path: Path) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    ensure(tmp_path, [NODE], now)
    assert ensure_keystore(tmp_path, NODE.name, "a-password")
    assert not ensure_keystore(tmp_path, NODE.name, "a-password")
    ensure(tmp_path, [NODE], now + timedelta(days=340))
    assert ensure_keystore(tmp_path, NODE.name, "a-password")
    assert ensure_keystore(tmp_path, NODE.name, "another-password")


def test_java_is_told_whom_to_trust_and_a_second_time_nothing_is_written(tmp_path: Path) -> None:
    ensure(tmp_path, [], tokens=False)
    assert ensure_truststore(tmp_path)
    assert not ensure_truststore(tmp_path)
    store = tmp_path / "ca.p12"
    store.write_bytes(base64.b64decode((tmp_path / "ca.p12.b64").read_text()))
    told = openssl("pkcs12", "-in", str(store), "-nokeys", "-passin", "pass:")
    body = (tmp_path / "ca.crt").read_text()
    assert body.strip() in told
    (tmp_path / "ca.crt").unlink()
    ensure(tmp_path, [], tokens=False)
    assert ensure_truststore(tmp_path)
