"""The goals, whether they are met, and why not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

NOT_MET: Final = {
    "memory_peak_mb": "nearly every record of this batch makes groups of its own, each with a delta.",
    "hot_write_units_while_events_come": (
        "the changes of the aggregates come back in the stream and take part of each batch. Lambda could "
        "filter them, but it allows no filter beside the tumbling window that names the shard. Larger batches "
        "reduce it."
    ),
    "hot_aggregation_against_not_exact": (
        "by the one write with which a process first moves the fencing token of a shard's quarantine; counters cost "
        "the same."
    ),
    "handler_to_json_loads_many_groups": (
        "a record touches more than one item, and building each request costs about as much as parsing a record's "
        "JSON. Tried: expressions built once, a share of the items per thread. Runs land on either side of the goal; "
        "with few groups it is well within."
    ),
    "handler_to_json_loads_few_groups": "see the split of the CPU time: requests for the touched items.",
    "handler_with_botocore_to_json_loads_many_groups": (
        "botocore's serialization, signing and parsing of one call cost many times what parsing a record does, once "
        "per touched item. An HTTP client of our own was not considered worth it."
    ),
    "log_write_units_batch_1000": "the log has too many URLs and clients for a batch to meet them often.",
    "log_write_units_batch_10000": "the log has too many URLs and clients for a batch to meet them often.",
    "big_batch_cpu_seconds": (
        "nearly every record of this batch has a client of its own, so five of the twenty aggregates write an item "
        "per record."
    ),
    "powertools_idempotent_to_handler": "the share of building requests grows with the touched items.",
    "powertools_empty_to_fold": (
        "with an empty handler Powertools looks at no record: it wraps each, to deserialize it when it is read. "
        "Reading each record's sequence number and type alone (*reading_sequence_and_type* below) takes more than a "
        "fifth of that, so anything that counts in Python does. Tried: sources looked up by type, counts as "
        "constants, fewer calls per record. The other two rows compare with handlers that read their record."
    ),
    "powertools_looking_to_fold_one_aggregate": (
        "runs land on either side of the goal: much of the fold's time is the first look at a record, which has left "
        "the processor's cache (*reading_sequence_and_type* below). Tried: sources looked up by type, counts as "
        "constants, fewer calls per record."
    ),
}


def goals(report: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Value, goal and verdict by name; goals whose section the report lacks are left out."""
    found: dict[str, dict[str, Any]] = {}

    def most(name: str, value: float, limit: float) -> None:
        found[name] = {"value": value, "goal": f"<= {limit:.6g}", "met": value <= limit}

    def least(name: str, value: float, limit: float) -> None:
        found[name] = {"value": value, "goal": f">= {limit:.6g}", "met": value >= limit}

    cost = report["cost"]
    ours, careless = (cost["hot"][name] for name in ("accept_and_watermark", "coalescing"))
    most("hot_write_units", ours["write_units"], 1.05)
    most("hot_write_units_while_events_come", cost["hot_while_events_come"]["write_units"], 1.05)
    most("long_tail_write_units", cost["long_tail"]["accept_and_watermark"]["write_units"], 2.0)
    for batch, limit in ((1_000, 1.6), (10_000, 1.35)):
        if f"log_three_aggregates_{batch}" in cost:
            most(f"log_write_units_batch_{batch}", cost[f"log_three_aggregates_{batch}"]["write_units"], limit)
    most("hot_aggregation_write_units", ours["aggregation_write_units"], 0.06)
    most("hot_aggregation_against_not_exact", ours["aggregation_write_units"], careless["aggregation_write_units"])
    most("accept_calls", cost["accept_in_bulk"]["calls"], 0.05)
    most("redelivery_error_percent", cost["redelivered"]["accept_and_watermark"]["error_percent"], 0.0)
    window = report["windows"]["memory"]["packed_buckets"]
    most("window_read_units", window["read_units"], 3.0)
    most("window_read_calls", window["read_calls"], 1.0)

    at = report["cpu"]["1000_records"]
    decode = at["decode"]
    most("fold_to_json_loads", at["aggregates_3.fold"] / decode, 1.0)
    most("handler_to_json_loads_few_groups", at["aggregates_3.handler_of_few_groups"] / decode, 2.0)
    most("handler_to_json_loads_many_groups", at["aggregates_3.handler"] / decode, 2.0)
    most("handler_with_botocore_to_json_loads_many_groups", at["aggregates_3.handler_with_botocore"] / decode, 2.0)
    least("powertools_idempotent_to_handler", at["powertools_idempotent"] / at["aggregates_3.handler_of_few_groups"], 5)
    least("powertools_empty_to_fold", at["powertools_empty"] / at["aggregates_3.fold"], 5)
    least("powertools_looking_to_fold_one_aggregate", at["powertools_looking"] / at["aggregates_1.fold"], 5)
    big = report["memory"]
    most("memory_peak_mb", big["peak_mb"], 256)
    most("big_batch_cpu_seconds", big["cpu_seconds"], 2.0)
    cold = report["cold_start"]
    most("cold_start_to_bare_client", cold["aggregator_init"]["cpu_seconds"] / cold["bare_client"]["cpu_seconds"], 1.3)
    if "synth" in report:
        synth = report["synth"]
        most("synth_to_plain_l2", synth["example"]["cpu_seconds"] / synth["plain_l2"]["cpu_seconds"], 1.3)
    if "rate_100000" in report["scale"]["groups_1"]:
        hot = report["scale"]["groups_1"]["rate_100000"]["accept_and_watermark"]
        least("simulated_hot_counter_events_per_second", hot["events_per_second"], 100_000)
        most("simulated_hot_counter_throttles", hot["throttles"], 0.0)
        most("simulated_hot_counter_lag_seconds", hot["lag_seconds"], 10.0)
    return found
