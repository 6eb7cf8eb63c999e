"""The runtime keeps up just below the ceiling that `counters cost` names, and does not above it."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulation.capacity.questions import GROWS, QUESTIONS, Question, ask, trials

_PAGE = Path(__file__).parents[3] / "docs" / "capacity.md"
_QUESTIONS = (
    Question("one key", "--rate 3190 --groups 1 --own-key", 12),
    Question("many groups", "--rate 2000 --groups 1e6 --partitions 1", 8),
    Question("two executions", "--rate 2000 --groups 1e6 --partitions 4 --batch 10 --concurrency 2 --gather 0", 6),
    Question("leaderboard", "--rate 2000 --groups 200 --ranked --partitions 2 --batch 100 --gather 5", 24, scale=5),
)


@pytest.mark.parametrize("question", _QUESTIONS, ids=lambda question: question.text)
def test_a_backlog_grows_above_the_ceiling_alone(question: Question) -> None:
    (_, below), (_, above) = trials(question)
    assert below.growth < GROWS < above.growth


def test_the_page_has_the_answers_of_today() -> None:
    lines = _PAGE.read_text().splitlines()
    for question in QUESTIONS:
        [line] = [line for line in lines if f"`{question.options}`" in line]
        assert f" {ask(question).events_per_second:,.0f} " in line
