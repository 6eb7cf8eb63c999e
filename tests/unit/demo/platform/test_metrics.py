from __future__ import annotations

import json

from demo.platform.metrics import metric_sums
from tests.unit.demo.fakes import client


def _logged(namespace: str, **values: object) -> dict[str, str]:
    metrics = [{"Name": name, "Unit": "Count"} for name in values]
    document = {"_aws": {"CloudWatchMetrics": [{"Namespace": namespace, "Metrics": metrics}]}, **values}
    return {"message": json.dumps(document)}


def test_metrics_in_a_log_are_added_up() -> None:
    logs = client(
        "logs",
        "filter_log_events",
        {"events": [{"message": "START"}, _logged("Mine", Units=[1.5]), {"message": "[]"}], "nextToken": "more"},
        {"events": [_logged("Mine", Units=[1, 2], Records=4), _logged("Others", Units=99), {"message": '{"a": 1}'}]},
    )

    assert metric_sums(logs, "/group", "Mine") == {"Units": 4.5, "Records": 4}
