"""DynamoDB and Lambda, simulated: for the tests, the benchmarks and the demo.

From the bottom up; each imports only from what stands above it:

- `clock`: virtual time;
- `memory`, `memory_table`: DynamoDB in memory, with its streams, and one table of it;
- `counters_in_memory`: `Counters` on it, counted at once, with faults;
- `aws`: rules of AWS that several simulators follow; docs/aws-rules.md has all of them, with their sentences;
- `engines`: DynamoDB Local, started where it is installed;
- `queue`, `throttled_burst`: a queue, and a table without enough units, in virtual time;
- `delivery`: the event source mapping that hands a stream to a function, as AWS documents it;
- `faults`: what can go wrong with a call, and invocations that stop before each call;
- `oracle`: declarations, each with plain Python that says what it must count;
- `schedules`: writers, deliveries and faults interleaved by a seed, compared with the oracle;
- `world`, `handler_process`: a table and its aggregator, delivered to by hand, and its handler, to be killed;
- `hostile`: strangers at every door of the runtime, seeded;
- `soak`, `mutations`: schedules until time is up, and the runtime's safety mechanisms switched off one by one;
- `pairs`, `quotas`: all features on one table at once, with backfills and verifications, and a quota that is shared;
- `specification`: runs recorded for TLC.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

if find_spec("dynamodb_counters") is None:
    # `python -m simulation.soak` runs in a plain checkout.
    sys.path.insert(0, str(Path(__file__).parents[1] / "lambdas"))
