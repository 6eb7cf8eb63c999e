"""Verdicts on groups of which some sources may have expired."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dynamodb_counters import Aggregate, Count, Event, Ranking, Sum
from dynamodb_counters._backfill.verification import judge
from dynamodb_counters._items.table_schema import SCORE

SALE = Event("sale", key=("shop", "id"))
_numbers = st.integers(-3, 3)


@given(st.sampled_from([Count(), Sum("price")]), _numbers, _numbers)
def test_a_score_that_differs_from_its_measure_is_drift_though_events_may_have_expired(
    measure: Count | Sum, total: int, score: int
) -> None:
    ranking = Ranking(measure="total", leaderboard="SHOPS")
    shops = Aggregate("shops", SALE, by="shop", measures={"total": measure}, ranking=ranking)
    missing = {name: number for name, number in (("total", total), (SCORE, score)) if number}

    verdicts = list(judge(shops, missing, may_exceed=True, is_gone=False))

    certain = [numbers.get(SCORE, 0) for verdict, _, numbers in verdicts if verdict == "drifted"]
    lost = total if isinstance(measure, Count) and total > 0 else 0
    assert sum(certain) == score - total + lost
    found = [numbers for *_, numbers in verdicts]
    assert {name: sum(numbers.get(name, 0) for numbers in found) for name in missing} == missing
    assert all(all(numbers.values()) for numbers in found)
