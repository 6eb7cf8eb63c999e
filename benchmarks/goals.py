"""The goals, whether they are met, and why not."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import getitem
from typing import Any, Final

GOALS: Final = """
hot_write_units: cost/hot/accept_and_watermark/write_units <= 1.05
hot_write_units_while_events_come: cost/hot_while_events_come/write_units <= 1.05
long_tail_write_units: cost/long_tail/accept_and_watermark/write_units <= 2
log_write_units_batch_1000: cost/log_three_aggregates_1000/write_units <= 1.6
log_write_units_batch_10000: cost/log_three_aggregates_10000/write_units <= 1.35
hot_aggregation_write_units: cost/hot/accept_and_watermark/aggregation_write_units <= 0.06
hot_aggregation_to_not_exact: cost/hot/{accept_and_watermark / coalescing}/aggregation_write_units <= 1.02
redelivery_error_percent: cost/redelivered/accept_and_watermark/error_percent <= 0
window_read_units: windows/memory/packed_buckets/read_units <= 3
window_read_calls: windows/memory/packed_buckets/read_calls <= 1
ranks_score_units: ranks/the rank of a score/units <= 2.5
ranks_member_units: ranks/the rank of a member/units <= 2.5
ranks_at_units: ranks/the score of a rank/units <= 2.5
ranks_between_units: ranks/how many from 1,000 to 1,999/units <= 2.5
ranks_write_units_batch_100: ranks/a change, in batches of 100/units <= 2.2
ranks_write_units_batch_1000: ranks/a change, in batches of 1,000/units <= 1.1
ranks_write_units_batch_10000: ranks/a change, in batches of 10,000/units <= 0.6
units_at_1_partition: partitions/1/units <= 1.05
units_at_4_partitions: partitions/4/units <= 1.05
units_at_16_partitions: partitions/16/units <= 1.05
units_at_64_partitions: partitions/64/units <= 2.1
fold_to_json_loads: cpu/1000_records/{aggregates_3.fold / decode} <= 1
handler_to_json_loads_few_groups: cpu/1000_records/{aggregates_3.handler_of_few_groups / decode} <= 2
handler_to_json_loads_many_groups: cpu/1000_records/{aggregates_3.handler / decode} <= 2
powertools_idempotent_to_handler: cpu/1000_records/{powertools_idempotent / aggregates_3.handler_of_few_groups} >= 5
powertools_looking_to_fold_one_aggregate: cpu/1000_records/{powertools_looking / aggregates_1.fold} >= 5
memory_peak_mb: memory/peak_mb <= 256
big_batch_to_json_loads: memory/{cpu_seconds / decode_seconds} <= 20
cold_start_to_bare_client: cold_start/{aggregator_init / bare_client}/cpu_seconds <= 1.3
packed_hot_units: cost/hot/packed/units <= 0.05
packed_hot_units_while_events_come: cost/hot_while_events_come_packed/units <= 0.05
packed_log_units_batch_100: cost/log_three_aggregates_packed_100/units <= 0.43
packed_log_units_batch_10000: cost/log_three_aggregates_packed_10000/units <= 0.37
paged_log_units_batch_100: pages/log/pages, 100 chunks a batch/units <= 0.065
paged_log_units_batch_10000: pages/log/pages, one batch/units <= 0.05
paged_distinct_per_day_units: pages/distinct/clients of a day, pages/units <= 0.1
paged_distinct_per_url_units: pages/distinct/clients of a URL, pages/units <= 0.1
paged_read_units: pages/reads/a group/units <= 0.5
paged_read_100_groups_units_to_pages: pages/reads/100 groups/units_to_pages <= 0.5
paged_cpu_to_items: pages/cpu/{pages / items}, 100 chunks a batch/microseconds <= 0.2
accept_url_time_client: packing/url, time, client of the real log/5000 <= 0.01, was 0.0116
accept_all_of_the_log: packing/the same, status, bytes, referrer, agent/5000 <= 0.0238, was 0.0331
dollars_own_code: dollars/from your code, 5,000 a batch <= 0.02, was 0.027
dollars_batched: dollars/over HTTP, 100 a request <= 0.05, was 0.052
dollars_single: dollars/to a function URL, one a request, validated <= 1.3, was 2.71
cold_start_cpu_seconds: cold_start/aggregator_init/cpu_seconds <= 0.25, was 0.413
small_table_1_a_second: dollars/1 a second to increments, gathered for 10 s <= 3, was 6.4
small_table_10_a_second: dollars/10 a second to increments, gathered for 10 s <= 2, was 3.3
"""
"""A goal a line: where the value stands in the report, or a ratio of two in braces; perhaps what the value once was."""

NOT_MET: Final = {
    "window_read_calls": (
        "a process reads once per minute which definitions count: one call for three queries here, half a unit"
    ),
    "hot_write_units": "0.05 is an update per page and batch; checkpoints add one for every hundred",
    "hot_write_units_while_events_come": (
        "the changes of the aggregates take part of each batch; Lambda allows no filter with the tumbling window"
    ),
    "fold_to_json_loads": "runs land on either side: 0.88 on a quiet machine, 1.05 on one whose cores were shared",
    "handler_to_json_loads_many_groups": "a record touches more than one item, each with a request to build",
    "big_batch_to_json_loads": "runs land on either side: the batch takes 2.1 s, one decoding beside it 0.09 to 0.14",
    "paged_distinct_per_url_units": (
        "nearly every event brings a member, so pages for 390 KB come into being; an item per member takes 1.33"
    ),
    "powertools_idempotent_to_handler": "3.7 to 5.3 by machine: the handler depends on the processor's cache",
    "paged_cpu_to_items": "known items go 25 in a request, at a fifth of the CPU; pages cost what they did",
    "powertools_looking_to_fold_one_aggregate": "much of the fold is the first look at a record, out of the cache",
}


def goals(report: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Value, goal and result by name; goals whose section the report lacks are left out."""
    results = {}
    for name, text in (line.split(": ") for line in GOALS.strip().splitlines()):
        goal, _, before = text.partition(", was ")
        path, relation, limit = goal.rsplit(" ", 2)
        try:
            value = _value(report, path)
        except KeyError:
            continue
        met = value <= float(limit) if relation == "<=" else value >= float(limit)
        results[name] = {"value": value, "goal": f"{relation} {limit}", "met": met, "before": before or None}
    return results


def _value(report: Any, path: str) -> float:
    head, _, rest = path.partition("{")
    both, _, tail = rest.partition("}")
    value, *others = (float(reduce(getitem, f"{head}{part}{tail}".split("/"), report)) for part in both.split(" / "))
    return value / others[0] if others else value
