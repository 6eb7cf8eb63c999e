"""Prices: dollars for one of what is billed, by names such as ``dynamodb.write_unit``, of one Region at one date."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final

FILE: Final[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("prices.toml").read_text(encoding="utf-8"))
SERVICES: Final[dict[str, dict[str, Any]]] = {name: each for name, each in FILE.items() if isinstance(each, dict)}
PRICES: Final[dict[str, float]] = {
    f"{service}.{name}": float(each["dollars"]) / each["per"]
    for service, table in SERVICES.items()
    for name, each in table.items()
    if isinstance(each, dict)
}
