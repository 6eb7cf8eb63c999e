"""A question to a deployment, and its answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from demo.aws_smoke.deployed import Deployed, UnansweredError
from demo.aws_smoke.expectations import Expectations


@dataclass(frozen=True)
class Answer:
    """An answer in words, and whether it is as assumed; None of a figure that nothing is assumed of."""

    text: str
    as_assumed: bool | None

    @property
    def seen(self) -> str:
        return {True: "as assumed: ", False: "**otherwise**: ", None: ""}[self.as_assumed] + self.text


@dataclass(frozen=True)
class Question:
    """A question, the project's assumption with a link to where it relies on it, and what finds the answer."""

    text: str
    assumed: str
    ask: Callable[[Deployed], Answer]


def ask(question: Question, deployed: Deployed) -> str:
    """Ask and note the answer; return what the page says of it. No answer keeps the others from being asked."""
    expectations: Expectations = deployed.expectations
    expectations.progress(question.text)
    try:
        answer = question.ask(deployed)
    except UnansweredError as error:
        expectations.skip(question.text, str(error))
        return f"not answered: {error}"
    except Exception as error:  # noqa: BLE001
        expectations.check(question.text, "an answer", f"{type(error).__name__}: {error}")
        # Without its message, which may name the account.
        return f"not answered: {type(error).__name__}"
    if answer.as_assumed is None:
        expectations.progress(f"seen: {answer.text}")
    else:
        expectations.check(question.text, answer.text if answer.as_assumed else question.assumed, answer.text)
    return answer.seen
