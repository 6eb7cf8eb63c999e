"""The price list: dollars per unit of everything that is billed."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Price:
    """One price: dollars for so many of it, where it is published, and how it was checked."""

    dollars: float
    per: float
    source: str
    checked: str


@dataclass(frozen=True, slots=True)
class PriceList:
    """Prices of one Region at one date, by names such as ``dynamodb.write_unit``."""

    date: str
    region: str
    prices: dict[str, Price]

    @classmethod
    def parse(cls, text: str) -> PriceList:
        """Read a price file; what is wrong with it is a LookupError, TypeError or ValueError."""
        content: dict[str, Any] = tomllib.loads(text)
        prices = {
            f"{service}.{name}": Price(float(each["dollars"]), each["per"], table["source"], each["checked"])
            for service, table in content.items()
            if isinstance(table, dict)
            for name, each in table.items()
            if isinstance(each, dict)
        }
        return cls(str(content["date"]), content["region"], prices)

    def of(self, name: str) -> float:
        return self.prices[name].dollars / self.prices[name].per
