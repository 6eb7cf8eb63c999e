"""The goals, whether they are met, and why not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

GOALS: Final = """
hot_write_units: cost/hot/accept_and_watermark/write_units <= 1.05
hot_write_units_while_events_come: cost/hot_while_events_come/write_units <= 1.05
long_tail_write_units: cost/long_tail/accept_and_watermark/write_units <= 2
log_write_units_batch_1000: cost/log_three_aggregates_1000/write_units <= 1.6
log_write_units_batch_10000: cost/log_three_aggregates_10000/write_units <= 1.35
hot_aggregation_write_units: cost/hot/accept_and_watermark/aggregation_write_units <= 0.06
hot_aggregation_to_not_exact: cost/hot/{accept_and_watermark / coalescing}/aggregation_write_units <= 1.02
accept_calls: cost/accept_in_bulk/calls <= 0.05
redelivery_error_percent: cost/redelivered/accept_and_watermark/error_percent <= 0
window_read_units: windows/memory/packed_buckets/read_units <= 3
window_read_calls: windows/memory/packed_buckets/read_calls <= 1
fold_to_json_loads: cpu/1000_records/{aggregates_3.fold / decode} <= 1
handler_to_json_loads_few_groups: cpu/1000_records/{aggregates_3.handler_of_few_groups / decode} <= 2
handler_to_json_loads_many_groups: cpu/1000_records/{aggregates_3.handler / decode} <= 2
powertools_idempotent_to_handler: cpu/1000_records/{powertools_idempotent / aggregates_3.handler_of_few_groups} >= 5
powertools_looking_to_fold_one_aggregate: cpu/1000_records/{powertools_looking / aggregates_1.fold} >= 5
memory_peak_mb: memory/peak_mb <= 256
big_batch_to_json_loads: memory/{cpu_seconds / decode_seconds} <= 20
cold_start_to_bare_client: cold_start/{aggregator_init / bare_client}/cpu_seconds <= 1.3
synth_to_plain_l2: synth/{example / plain_l2}/cpu_seconds <= 1.3
simulated_hot_counter_events_per_second: scale/groups_1/rate_100000/accept_and_watermark/events_per_second >= 100000
simulated_hot_counter_throttles: scale/groups_1/rate_100000/accept_and_watermark/throttles <= 0
simulated_hot_counter_lag_seconds: scale/groups_1/rate_100000/accept_and_watermark/lag_seconds <= 10
simulated_write_sharded_counter_throttles: scale/groups_1/rate_100000/accept_and_watermark_16_write_shards/throttles <= 0
hot_total_write_units_4_partitions: partitions/4/groups/hot total/write_units <= 1.1
hot_total_write_units_16_partitions: partitions/16/groups/hot total/write_units <= 1.1
hot_total_write_units_64_partitions: partitions/64/groups/hot total/write_units <= 3
hour_bucket_write_units_16_partitions: partitions/16/groups/hour bucket/write_units <= 1.1
touched_5_times_per_day_write_units_100_partitions: partitions/100/long_tail/5/write_units <= 1.1
touched_20_times_per_day_write_units_100_partitions: partitions/100/long_tail/20/write_units <= 1.1
touched_100_times_per_day_write_units_100_partitions: partitions/100/long_tail/100/write_units <= 1.1
touched_300_times_per_day_write_units_100_partitions: partitions/100/long_tail/300/write_units <= 1.1
watermark_bytes: partitions/*/watermark_bytes <= 28
hour_bucket_corrected_daily_write_units_100_partitions: corrected/*/write_units <= 3
redelivered_batch_read_units: redelivered/200_items/read_units <= 1
redelivered_batch_write_units: redelivered/200_items/write_units <= 0
redelivered_small_batch_write_units_per_item: redelivered/20_items/{write_units / items} <= 1
replay_wrong_counts: redelivered/*/wrong <= 0
packed_accept_key_attributes_64_per_chunk: packing/chunks/log, key attributes/64/units <= 0.03
packed_accept_key_attributes_256_per_chunk: packing/chunks/log, key attributes/256/units <= 0.015
packed_accept_seven_attributes_64_per_chunk: packing/chunks/log, seven attributes/64/units <= 0.046
packed_accept_seven_attributes_256_per_chunk: packing/chunks/log, seven attributes/256/units <= 0.028
packed_hot_units: cost/hot/packed/units <= 0.05
packed_hot_units_while_events_come: cost/hot_while_events_come_packed/units <= 0.05
packed_log_units_batch_100: cost/log_three_aggregates_packed_100/units <= 0.43
packed_log_units_batch_10000: cost/log_three_aggregates_packed_10000/units <= 0.37
paged_log_units_batch_100: pages/log/pages, 100 chunks a batch/units <= 0.065
paged_log_units_batch_10000: pages/log/pages, one batch/units <= 0.05
paged_hot_counter_to_items: pages/hot/1/{pages / items} <= 1
paged_hot_workload_to_items: pages/hot/50/{pages / items} <= 1
paged_distinct_per_day_units: pages/distinct/clients of a day, pages/units <= 0.1
paged_distinct_per_url_units: pages/distinct/clients of a URL, pages/units <= 0.1
paged_read_units: pages/reads/a group/units <= 0.5
paged_read_units_of_a_million_groups: page_growth/1000000/page_known <= 0.5
paged_read_100_groups_units_to_pages: pages/reads/100 groups/units_to_pages <= 0.5
paged_cpu_to_items: pages/cpu/{pages / items}, 100 chunks a batch/microseconds <= 0.2
unique_30_days_read_units: measures/memory/unique/*/this/read_units <= 1.5
unique_30_days_write_units_per_member_day: measures/memory/unique/*/this/write_units <= 2.1
percentiles_write_units_per_bucket: measures/memory/percentiles/sigma 0.5/this/units_per_bucket <= 1.1
threshold_units_where_nothing_is_crossed: measures/memory/thresholds/*/above no level/more <= 0
threshold_units_per_crossing: measures/memory/thresholds/*/above one level more each time/more_per_crossing <= 1
packed_20_percent_duplicates_raise: packing/duplicates/log/{20% close by / none} - 1 <= 0.15
packed_8_writers_raise: writers/{8 / 1}/with pauses/units - 1 <= 0.5
packed_8_writers_part_each_raise: writers/{8 / 1}/a part each/units - 1 <= 0.1
packed_fold_by_rows_to_records: chunk_cpu/few_groups/rows <= 0.35
packed_fold_by_columns_to_records: chunk_cpu/few_groups/columns <= 0.2
"""  # noqa: E501  # One goal has a long name.
"""A goal a line: where the value stands in the report, the largest one of `*`, or a ratio of two in braces."""

NOT_MET: Final = {
    "window_read_calls": (
        "a process reads once per minute which definitions count: one call for three queries here, half a unit. No "
        "request of DynamoDB queries a group and reads that item."
    ),
    "hot_write_units": (
        "0.05 of it is an update per page and batch, exact or not; checkpoints add an update for every hundred."
    ),
    "hot_write_units_while_events_come": (
        "the changes of the aggregates come back in the stream and take part of each batch. Lambda could "
        "filter them, but it allows no filter with the tumbling window that names the shard. Larger batches "
        "reduce it."
    ),
    "fold_to_json_loads": (
        "runs land on either side of the goal: 0.88 on a quiet machine, 1.05 on one whose two cores were shared."
    ),
    "handler_to_json_loads_many_groups": (
        "a record touches more than one item, and building each request costs about as much as parsing a record's "
        "JSON. Tried: expressions built once, a share of the items per thread. With few groups it is well within."
    ),
    "simulated_hot_counter_throttles": (
        "144 shards feed the one item, which has a watermark of each: a write takes 5 units, and 144 writes a second "
        "720 of the item's 1,000. Some meet in the same tenth of a second and are tried again in the next. With write "
        "shards none is (*accept and watermark 16 write shards* below)."
    ),
    "paged_distinct_per_url_units": (
        "nearly every event brings a member: there are 7,910 clients of a URL in 9,977 events, each with the text of "
        "both. So pages for 390 KB come into being, at two units each, and are written in three batches. An item per "
        "member takes 1.33."
    ),
    "packed_fold_by_rows_to_records": (
        "single records take little more than half of the time that they took when this goal was set, since each is "
        "read once; events of chunks take less as well, but not by as much."
    ),
    "packed_fold_by_columns_to_records": (
        "runs land on either side of the goal: what parsing single records takes depends on what the processor's cache "
        "holds."
    ),
    "powertools_idempotent_to_handler": (
        "machines land on either side of the goal, 3.7 to 5.3, and commits measured in turn on one machine alike: the "
        "handler's time depends on the processor's cache, that of an idempotent function does not."
    ),
    "powertools_looking_to_fold_one_aggregate": (
        "runs land on either side of the goal: much of the fold's time is the first look at a record, which has left "
        "the processor's cache (*reading_sequence_and_type* below). Tried: sources looked up by type, counts as "
        "constants, fewer calls per record."
    ),
}


def goals(report: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Value, goal and verdict by name; goals whose section the report lacks are left out."""
    found = {}
    for name, goal in (line.split(": ") for line in GOALS.strip().splitlines()):
        path, relation, limit = goal.rsplit(" ", 2)
        try:
            value = _value(report, path)
        except KeyError:
            continue
        met = value <= float(limit) if relation == "<=" else value >= float(limit)
        found[name] = {"value": value, "goal": f"{relation} {limit}", "met": met}
    return found


def _value(report: Mapping[str, Any], path: str) -> float:
    ratio = path.removesuffix(" - 1")
    head, _, rest = ratio.partition("{")
    if not rest:
        return _at(report, head.split("/"))
    both, _, tail = rest.partition("}")
    one, other = (_at(report, f"{head}{each}{tail}".split("/")) for each in both.split(" / "))
    return one / other - (ratio != path)


def _at(report: Any, path: list[str]) -> float:
    if not path:
        return float(report)
    name, *rest = path
    return max(_at(each, rest) for each in report.values()) if name == "*" else _at(report[name], rest)
