"""Lambda entry points: each reads its environment, calls the runtime and reports metrics."""

from __future__ import annotations

import gc
from typing import Final

_ALLOCATIONS: Final = 100_000

# Imports leave next to no garbage: by Python's default, looking for it takes an eighth of a cold start, which makes
# some 65,000 objects.
gc.set_threshold(_ALLOCATIONS)
