"""The stream-delivery harness: the real aggregator behind a simulated event source mapping, with faults from a seed.

From the table up:

- `memory` is a table in memory with boto3's methods: `writes` and `queries` on `conditions`, `updates` and `values`;
- `shards` is its stream, `source` reads the stream of any engine as Lambda would hand it over;
- `mapping` delivers it with the semantics of an event source mapping, each shard in a `lane`;
- `actors` runs invocations so that a scheduler decides about each of their store calls;
- `faults` says what goes wrong with a call, `schedule` what goes wrong between them;
- `specs` says what is counted, `workload` writes the events, `truth` says what their counts must be, `plainly`;
- `model` is the commit protocol alone, small enough to try every interleaving;
- `mutations` breaks the `mechanisms` of the runtime on purpose, `soak` runs schedules until time is up.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

if find_spec("dynamodb_counters") is None:
    # So that `python -m tests.harness.soak` runs in a plain checkout.
    sys.path.insert(0, str(Path(__file__).parents[2] / "lambdas"))
