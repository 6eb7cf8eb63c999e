"""Loop detection: Lambda refuses what its own requests have led to too often."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from simulation.aws.rule import Rule

RecursiveLoop: TypeAlias = Literal["Allow", "Terminate"]
"""Lambda's default is to terminate."""

_MOST_LINKS: Final = 16

LOOPS_END: Final = Rule(
    "Lambda ends a loop after 16 invocations",
    "If a function is invoked by the same triggering event more than 16 times, Lambda will stop the next invocation "
    "and sends the event to a Dead-Letter Queue or on-failure destination, if configured.",
    "https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html",
    switch="simulation.queue.polling.Mapping(recursive_loop)",
    guard="Lambda may take the consumer's own queue for a loop",
)


def is_refused(links: int, recursive_loop: RecursiveLoop) -> bool:
    """Whether Lambda drops an invocation with so many in its chain of requests, itself included."""
    return links > _MOST_LINKS and recursive_loop == "Terminate"
