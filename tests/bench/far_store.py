"""A parameter store as far away as that of AWS: it speaks HTTPS and takes its time to answer."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import certifi
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.fakes.parameter_store import ParameterStore

SECONDS = 0.03
"""What a call within a region takes."""


class FarStore(ParameterStore):
    """Has what another store has; `variables` are those with which a function finds and trusts it."""

    variables: dict[str, str]


@contextmanager
def run(near: ParameterStore, folder: Path) -> Iterator[FarStore]:
    folder.mkdir()
    certificate, authorities = folder / "certificate.pem", folder / "authorities.pem"
    certificate.write_bytes(make_certificate())
    # beside all others, because a function on AWS loads these too
    authorities.write_bytes(Path(certifi.where()).read_bytes() + certificate.read_bytes())
    store = FarStore(near.values, readable=near.readable)
    store.delay = SECONDS
    store.encrypt(certificate)
    store.variables = {"AWS_ENDPOINT_URL_SSM": store.base_url, "SSL_CERT_FILE": str(authorities)}
    with store:
        yield store


def make_certificate() -> bytes:
    """A certificate of 127.0.0.1 that signs itself, and its key."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "parameter store")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return private + made.public_bytes(serialization.Encoding.PEM)
