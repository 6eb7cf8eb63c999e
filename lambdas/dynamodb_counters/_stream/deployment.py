"""The identity of a deployment: what it runs and what it counts."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from dynamodb_counters._declarations import Declaration
from dynamodb_counters._declarations.codec import encode

_RUNTIME = Path(__file__).resolve().parents[1]


def deployment_id(declarations: tuple[Declaration, ...]) -> str:
    """Differs between deployments that may fold differently: by their code or by their declarations."""
    return hashlib.sha256(f"{code_digest(_RUNTIME)} {encode(declarations)}".encode()).hexdigest()[:16]


@cache
def code_digest(package: Path) -> str:
    """Digest of a package's own source files."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(f"{path.relative_to(package).as_posix()}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return digest.hexdigest()
