"""The goals, and whether they are met."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def goals(report: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Value, goal and verdict by name; goals whose section the report lacks are left out."""
    found: dict[str, dict[str, Any]] = {}

    def most(name: str, value: float | None, limit: float) -> None:
        if value is not None:
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
