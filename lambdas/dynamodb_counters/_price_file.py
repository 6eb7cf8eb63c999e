"""The price file: dollars per unit of everything that is billed, as installed or as an operator has it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class PriceList:
    """Dollars for one of what is billed, by names such as ``dynamodb.write_unit``, of one Region at one date."""

    date: str
    region: str
    prices: dict[str, float]

    @classmethod
    def parse(cls, text: str) -> PriceList:
        """Read a price file; what is wrong with it is a LookupError, TypeError or ValueError."""
        content: dict[str, Any] = tomllib.loads(text)
        prices = {
            f"{service}.{name}": float(each["dollars"]) / each["per"]
            for service, table in content.items()
            if isinstance(table, dict)
            for name, each in table.items()
            if isinstance(each, dict)
        }
        return cls(str(content["date"]), content["region"], prices)

    def of(self, name: str) -> float:
        return self.prices[name]


PRICES: Final = PriceList.parse(files("dynamodb_counters").joinpath("prices.toml").read_text(encoding="utf-8"))
