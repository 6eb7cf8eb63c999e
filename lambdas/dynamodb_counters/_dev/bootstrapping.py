"""Resources that `cdk bootstrap` leaves in an account and deployments ask for, made in an emulator at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from dynamodb_counters._dev.emulator import Emulator

_QUALIFIER: Final = "hnb659fds"
_QUALIFIER_SETTING: Final = "@aws-cdk/core:bootstrapQualifier"
_VERSION: Final = "30"
"""Version of the bootstrap stack; newer than any app asks for."""


def bootstrap(emulator: Emulator, directory: Path) -> None:
    """Prepare the emulated account for deployments of the app in a directory: the bucket of assets, and its version."""
    qualifier = _qualifier(directory / "cdk.json")
    bucket = f"cdk-{qualifier}-assets-{emulator.account}-{emulator.region}"
    emulator.client("s3").create_bucket(Bucket=bucket)
    emulator.client("ssm").put_parameter(
        Name=f"/cdk-bootstrap/{qualifier}/version", Value=_VERSION, Type="String", Overwrite=True
    )


def _qualifier(settings: Path) -> str:
    try:
        found = json.loads(settings.read_text(encoding="utf-8"))["context"][_QUALIFIER_SETTING]
    except (OSError, ValueError, LookupError, TypeError):
        # The CLI says what is wrong with the file.
        return _QUALIFIER
    return str(found)
