"""Writes the page of capacity questions, ``docs/capacity.md``: ``python -m simulation.capacity``, for six minutes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from dynamodb_counters.cli.show.costs import limited
from simulation.capacity.questions import ABOVE, BELOW, GROWS, QUESTIONS, Question, ask, trials
from simulation.capacity.world import Outcome

_PAGE: Final = Path(__file__).parents[2] / "docs" / "capacity.md"

_TEXT: Final = f"""\
# Capacity questions

Each line asks [`counters cost`](cost.md#ceilings) a question and tries its answer. `python -m simulation.capacity` runs
the real writers and the real aggregator in virtual time, on a table in memory that throttles by AWS's rules
(`simulation/aws`), at {1 - BELOW:.0%} less and at {ABOVE - 1:.0%} more than the ceiling. *grows by*: growth of the
backlog, from accepting an event to counting it, as a share of the events that came meanwhile. From {GROWS:.0%} on, a
workload does not keep up. *throttles* are per event.

| question | `counters cost` | at most/s | {1 - BELOW:.0%} less: grows by, throttles | {ABOVE - 1:.0%} more |
|---|---|---|---|---|
"""

_NOTES: Final = """
- A request takes 6 ms, give or take a tenth; a function the CPU time of
  [the estimate's formulas](cost.md#formulas), which are those of the ceiling, too. So the time of an invocation is
  confirmed as far as requests, threads and batches go, not its CPU time.
- One item: all of DynamoDB's units, and the events, are divided by 20, for the quota by 40; partitions, batches and
  round trips are not.
- One partition key: DynamoDB splits what was throttled for 5 seconds by sort key, which does not help as sort keys
  ascend. Elsewhere it does not split.
- Ten concurrent executions: AWS says that new accounts have fewer than 1,000, and gives no figure; 10 is what users
  report. Only the aggregator runs in this account.
- Above the rate at which an item or an index begins to throttle, batches become longer, which saves updates. So a
  ceiling is that of full batches: close to it, lag may rise by seconds before the backlog stays as it is.
"""


def line(question: Question, outcomes: tuple[Outcome, Outcome]) -> str:
    """A line of the table."""
    found = ask(question)
    answer = limited(found, question.load().rate)
    tried = (f"{max(each.growth, 0):.0%}, {each.throttles:.2g}" for each in outcomes)
    options = f"`{question.options}`"
    return f"| {question.text}: {options} | {answer} | {found.events_per_second:,.0f} | {' | '.join(tried)} |\n"


def main() -> None:
    """Ask all of them."""
    lines = []
    for question in QUESTIONS:
        (_, below), (_, above) = trials(question)
        lines.append(line(question, (below, above)))
        sys.stdout.write(lines[-1])
        sys.stdout.flush()
    _PAGE.write_text(_TEXT + "".join(lines) + _NOTES)


if __name__ == "__main__":
    main()
