"""Certificates for servers on loopback."""

from __future__ import annotations

import datetime as dt
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate of 127.0.0.1 by itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    made = _of_loopback(key).issuer_name(_named("127.0.0.1")).sign(key, hashes.SHA256())
    return _written(folder, made, key)


class CertificateAuthority:
    """An authority that signs certificates of 127.0.0.1. `path` is its own, in `folder`."""

    def __init__(self, folder: Path, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        made = (
            _begun(self._key)
            .subject_name(self._name)
            .issuer_name(self._name)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.path = folder / f"{name}.pem"
        self.path.write_bytes(made.public_bytes(serialization.Encoding.PEM))

    def sign(self, folder: Path) -> tuple[Path, Path]:
        """A certificate of 127.0.0.1 in `folder`, and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        made = _of_loopback(key).issuer_name(self._name).sign(self._key, hashes.SHA256())
        return _written(folder, made, key)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _begun(key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(dt.datetime(2020, 1, 1))
        .not_valid_after(dt.datetime(2090, 1, 1))
    )


def _of_loopback(key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    named = _begun(key).subject_name(_named("127.0.0.1"))
    return named.add_extension(address, critical=False)


def _written(
    folder: Path, made: x509.Certificate, key: ec.EllipticCurvePrivateKey
) -> tuple[Path, Path]:
    cert_path, key_path = folder / "cert.pem", folder / "key.pem"
    cert_path.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8
    plain = serialization.NoEncryption()
    key_path.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, plain))
    return cert_path, key_path
