"""The version of the packages. Part of what tells one deployment of the aggregator from another."""

from typing import Final

VERSION: Final = "0.1.0"
