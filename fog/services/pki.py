"""Certificates: authorities of a testbed's own, and what each part of it shows of itself."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fogscale.errors import FogscaleError

AUTHORITY = "ca"
TOKENS = "tokens"  # key pair by which the API server signs the tokens of service accounts
AUTHORITY_DAYS, CERTIFICATE_DAYS, RENEW_DAYS = 3650, 365, 30


@dataclass(frozen=True)
class Certificate:
    """Kubernetes reads the common name as the user and the organization as the group."""

    name: str
    common_name: str
    organization: str = ""
    hosts: tuple[str, ...] = ()  # names and addresses it serves under
    is_client: bool = True  # False: it only serves, and opens no door of others

    @property
    def subject(self) -> x509.Name:
        parts = [x509.NameAttribute(NameOID.COMMON_NAME, self.common_name)]
        if self.organization:
            parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, self.organization))
        return x509.Name(parts)

    @property
    def uses(self) -> list[x509.ObjectIdentifier]:
        return [
            *([ExtendedKeyUsageOID.CLIENT_AUTH] if self.is_client else []),
            *([ExtendedKeyUsageOID.SERVER_AUTH] if self.hosts else []),
        ]

    @property
    def alternatives(self) -> list[x509.GeneralName]:
        return [_general_name(host) for host in self.hosts]


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _make_private(folder: Path) -> None:
    """With its parents, as far as they are missing: mkdir gives its mode to the last one alone."""
    for each in [*reversed(folder.parents), folder]:
        if not each.exists():
            each.mkdir(mode=0o700)


def ensure(
    folder: Path, certificates: Sequence[Certificate], now: datetime | None = None, tokens: bool = True
) -> list[str]:
    """Makes what is missing, runs out or is for another subject; returns the names of those. `tokens`: with
    the key pair of service accounts."""
    now = now or datetime.now(UTC)
    _make_private(folder)
    made = []
    if not _is_authority(folder, now):
        made.append(_make_authority(folder, now))
    if tokens and not all((folder / f"{TOKENS}.{end}").exists() for end in ("key", "pub")):
        made.append(_make_token_key(folder))
    for certificate in certificates:
        if not _holds(folder, certificate, now):
            _issue(folder, certificate, now)
            made.append(certificate.name)
    return made


def _is_authority(folder: Path, now: datetime) -> bool:
    """Whether there is one that can vouch for others as long as their certificates last."""
    try:
        found = _authority(folder)
    except (FileNotFoundError, ValueError):
        return False
    if found.not_valid_before_utc > now:
        raise FogscaleError(
            f"{folder / AUTHORITY}.crt begins on {found.not_valid_before_utc:%d %B %Y}, which is still to"
            f" come by this machine's clock: set the clock, or remove {folder} and build again"
        )
    left = found.not_valid_after_utc - now
    return left > timedelta(days=CERTIFICATE_DAYS) and _fits(folder, AUTHORITY, found)


def _fits(folder: Path, name: str, certificate: x509.Certificate) -> bool:
    """Whether the key beside it is its own: a renewal may have been cut off between the two."""
    try:
        key = serialization.load_pem_private_key((folder / f"{name}.key").read_bytes(), None)
    except (FileNotFoundError, ValueError, TypeError):
        return False
    return key.public_key() == certificate.public_key()


def _holds(folder: Path, certificate: Certificate, now: datetime) -> bool:
    """A certificate of an authority that is gone is worth nothing."""
    try:
        found = x509.load_pem_x509_certificate((folder / f"{certificate.name}.crt").read_bytes())
        found.verify_directly_issued_by(_authority(folder))
    except (FileNotFoundError, ValueError, InvalidSignature):
        return False
    try:
        names = list(found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        names = []
    uses = found.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    return (
        _fits(folder, certificate.name, found)
        and list(uses) == certificate.uses
        and found.subject == certificate.subject
        and names == certificate.alternatives
        and found.not_valid_before_utc <= now
        and found.not_valid_after_utc - now > timedelta(days=RENEW_DAYS)
    )


def _authority(folder: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate((folder / f"{AUTHORITY}.crt").read_bytes())


def _make_authority(folder: Path, now: datetime) -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fogscale")])
    usage = x509.KeyUsage(
        digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False,
        key_encipherment=False, data_encipherment=False, key_agreement=False, encipher_only=False,
        decipher_only=False,
    )  # fmt: skip
    made = (
        _builder(name, name, key.public_key(), now, AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .sign(key, hashes.SHA256())
    )
    _write_pair(folder, AUTHORITY, key, made)
    return AUTHORITY


def _make_token_key(folder: Path) -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    _write(folder / f"{TOKENS}.key", _private(key))
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    _write(folder / f"{TOKENS}.pub", public)
    return TOKENS


def _issue(folder: Path, certificate: Certificate, now: datetime) -> None:
    authority = _authority(folder)
    signer = serialization.load_pem_private_key((folder / f"{AUTHORITY}.key").read_bytes(), None)
    if not isinstance(signer, ec.EllipticCurvePrivateKey):
        raise FogscaleError(f"{folder / AUTHORITY}.key is no key of ours: remove {folder}, then build again")
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(certificate.subject, authority.subject, key.public_key(), now, CERTIFICATE_DAYS)
    builder = builder.add_extension(x509.ExtendedKeyUsage(certificate.uses), critical=False)
    if certificate.hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName(certificate.alternatives), critical=False)
    _write_pair(folder, certificate.name, key, builder.sign(signer, hashes.SHA256()))


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, days: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))  # nodes' clocks may be a little behind
        .not_valid_after(now + timedelta(days=days))
    )


def _write_pair(
    folder: Path, name: str, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate
) -> None:
    _write(folder / f"{name}.key", _private(key))  # first: whoever sees the certificate finds its key
    _write(folder / f"{name}.crt", certificate.public_bytes(serialization.Encoding.PEM))


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write(path: Path, content: bytes) -> None:
    """Wholly or not at all."""
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    new.replace(path)


def write_private(path: Path, text: str) -> bool:
    """True if it was not there like that, for its owner alone."""
    if path.exists() and path.read_text() == text and path.stat().st_mode & 0o777 == 0o600:
        return False
    _write(path, text.encode())
    return True


def ensure_keystore(folder: Path, name: str, password: str) -> bool:
    """For Java: a certificate with its key, and beside it whom to trust, in base64 (`.p12.b64`). Encryption
    is never the same twice, so they are made anew only with the certificate. True if that was so."""
    stamp = hashlib.sha256((folder / f"{name}.crt").read_bytes() + password.encode()).hexdigest()
    key_file, trust_file = (folder / f"{name}{end}.p12.b64" for end in ("", "-trust"))
    seen = folder / f"{name}.p12.made-of"
    if key_file.exists() and trust_file.exists() and seen.exists() and seen.read_text() == stamp:
        return False
    key = serialization.load_pem_private_key((folder / f"{name}.key").read_bytes(), None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise FogscaleError(f"{folder / name}.key is no key of ours: remove {folder}, then build again")
    certificate = x509.load_pem_x509_certificate((folder / f"{name}.crt").read_bytes())
    authority = _authority(folder)
    encryption = serialization.BestAvailableEncryption(password.encode())
    store = pkcs12.serialize_key_and_certificates(name.encode(), key, certificate, [authority], encryption)
    trust = pkcs12.serialize_java_truststore([pkcs12.PKCS12Certificate(authority, b"ca")], encryption)
    _write(key_file, base64.b64encode(store))
    _write(trust_file, base64.b64encode(trust))
    _write(seen, stamp.encode())  # last: whatever is cut off before is made again
    return True


def ensure_truststore(folder: Path) -> bool:
    """For Java: whom to trust and nothing else, in base64 (`ca.p12.b64`). The authority is no secret, so
    there is no password. Such a file is never the same twice, so it is made anew only with the authority.
    True if that was so."""
    authority = _authority(folder)
    file, seen = folder / f"{AUTHORITY}.p12.b64", folder / f"{AUTHORITY}.p12.made-of"
    stamp = authority.fingerprint(hashes.SHA256()).hex()
    if file.exists() and seen.exists() and seen.read_text() == stamp:
        return False
    trusted = [pkcs12.PKCS12Certificate(authority, b"ca")]
    store = pkcs12.serialize_java_truststore(trusted, serialization.NoEncryption())
    _write(file, base64.b64encode(store))
    _write(seen, stamp.encode())  # last: whatever is cut off before is made again
    return True


def kubeconfig(folder: Path, name: str, server: str) -> str:
    """For whoever holds the certificate `name`; JSON is YAML."""

    def data(file: str) -> str:
        return base64.b64encode((folder / file).read_bytes()).decode()

    user = {"client-certificate-data": data(f"{name}.crt"), "client-key-data": data(f"{name}.key")}
    return kubeconfig_text(server, data(f"{AUTHORITY}.crt"), name, user)


def kubeconfig_text(server: str, authority: str, name: str, user: dict[str, str], namespace: str = "") -> str:
    """`authority` is its certificate in base64."""
    context = {"cluster": "fogscale", "user": name, **({"namespace": namespace} if namespace else {})}
    cluster = {"server": server, "certificate-authority-data": authority}
    values = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "fogscale",
        "contexts": [{"name": "fogscale", "context": context}],
        "clusters": [{"name": "fogscale", "cluster": cluster}],
        "users": [{"name": name, "user": user}],
    }  # fmt: skip
    return json.dumps(values, indent=2) + "\n"
