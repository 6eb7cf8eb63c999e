"""DynamoDB and Lambda, simulated: for the tests, the benchmarks and the demo.

From the bottom up; each imports only from what stands above it:

- `clock`: virtual time;
- `memory`, `memory_table`: DynamoDB in memory, with its streams and units, and one table of it;
- `aws`: rules of AWS that several simulators follow; docs/engines.md has all of them, with their sentences;
- `engines`: DynamoDB Local, started where it is installed;
- `queue`: a queue, and a table without enough units, in virtual time;
- `delivery`: the event source mapping that hands a stream to a function, as AWS documents it;
- `faults`: what can go wrong with a call, and invocations that stop before each call;
- `oracle`: what any declaration must count, and what items hold, read by the documented layout alone;
- `pairs`: the engine: features on one table, all at once or a few in a swarm; the kernel alone; a quota that is shared;
- `world`, `handler_process`: a table and its aggregator, delivered to by hand, and its handler, to be killed;
- `throttled_burst`: a burst of events at a queue before a table without enough units;
- `counters_in_memory`: `Counters` on it, counted at once, with faults;
- `hostile`: strangers at every door of the runtime, seeded;
- `mutations`: the runtime's safety mechanisms switched off one by one;
- `specification`: runs recorded for TLC;
- `nightly`: all of these.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

if find_spec("dynamodb_counters") is None:
    # `python -m simulation.pairs` runs in a plain checkout.
    sys.path.insert(0, str(Path(__file__).parents[1] / "lambdas"))
