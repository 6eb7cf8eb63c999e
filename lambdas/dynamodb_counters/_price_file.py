"""The price file that is installed with this package."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from dynamodb_counters._cost.price_list import PriceList

PRICES: Final = PriceList.parse(files("dynamodb_counters").joinpath("prices.toml").read_text(encoding="utf-8"))
