"""Runs swarms until time is up: ``python -m simulation.soak --minutes 30``; all else as `simulation.pairs`."""

from __future__ import annotations

import os
import sys
import time
from typing import Final

from simulation.pairs.__main__ import main

_MOST: Final = 10**9

if __name__ == "__main__":
    seed, processes = str(int(time.time()) * 1000), str(os.cpu_count() or 1)
    many = ["--minutes", "1", "--count", str(_MOST), "--seed", seed, "--processes", processes]
    sys.exit(main(["--swarm", *many, *sys.argv[1:]]))
