"""The tables of what depends on partitions, of deliveries that come again, and of the whole bill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

_Rows = list[Sequence[Any]]

_PARTS: Final = ("updating", "refused", "pruning", "index", "shards", "write_units", "not_exact")
_WRITES: Final = ("checkpoints",)
_READS: Final = ("checkpoints", "deployments", "pruning")


def partition_tables(report: Mapping[str, Any]) -> dict[str, _Rows]:
    tables = {name: {**each["groups"], **_tail(each["long_tail"])} for name, each in report["partitions"].items()}
    return {
        "Write units per update, by the table's partitions": _units(tables),
        "Bytes of an item, on average and at most": _bytes(tables),
        "Parts of an update": [
            ("partitions", "item", *(part.replace("_", " ") for part in _PARTS)),
            *(
                (name, item, *(units[part] for part in _PARTS))
                for name, items in tables.items()
                for item, units in items.items()
            ),
        ],
        "Cost of shards, per update": _shards(report["partitions"]),
        f"An hour bucket that 100 partitions correct once a day, day {report['sizes']['corrected_days']}": [
            ("corrections", "write units per update", "not exact", "bytes", "full on day"),
            *(
                (name, each["write_units"], each["not_exact"], each["bytes"], each["full_on_day"])
                for name, each in report["corrected"].items()
            ),
        ],
        "Delivered again": [
            ("what", "records", "shards", "items", "write units", "read units", "wrong counts"),
            *((name.replace("_", " "), *each.values()) for name, each in report["redelivered"].items()),
        ],
        **_bill(report["bill"]),
    }


def _tail(found: Mapping[str, Any]) -> dict[str, Any]:
    return {f"group touched {rate} times per day": each for rate, each in found.items()}


def _units(tables: Mapping[str, Mapping[str, Any]]) -> _Rows:
    """An item a row; what it takes without exactness is the same in every table, but for the size of the buckets."""
    last = list(tables.values())[-1]
    items = dict.fromkeys(item for table in tables.values() for item in table)
    return [
        ("item", *tables, "not exact"),
        *(
            (
                item,
                *(table[item]["write_units"] if item in table else None for table in tables.values()),
                last.get(item, next(iter(tables.values()))[item])["not_exact"],
            )
            for item in items
        ),
    ]


def _bytes(tables: Mapping[str, Mapping[str, Any]]) -> _Rows:
    items = dict.fromkeys(item for table in tables.values() for item in table)

    def text(table: Mapping[str, Any], item: str) -> str | None:
        return f"{table[item]['bytes']:,.0f} / {table[item]['peak_bytes']:,}" if item in table else None

    return [("item", *tables), *((item, *(text(table, item) for table in tables.values())) for item in items)]


def _shards(tables: Mapping[str, Any]) -> _Rows:
    columns = [*(f"{kind}: write units" for kind in _WRITES), *(f"{kind}: read units" for kind in _READS)]
    return [
        ("partitions", "minutes per batch", "updates per batch", *columns),
        *(
            (
                name,
                each["minutes_per_batch"],
                each["updates_per_batch"],
                *(each["shards"].get(kind, 0.0) for kind in _WRITES),
                *(each["reads"].get(kind, 0.0) for kind in _READS),
            )
            for name, each in tables.items()
        ),
    ]


def _bill(found: Mapping[str, Any]) -> dict[str, _Rows]:
    columns = list(next(iter(found["ways"].values())))
    names = (column.replace("_", ", ") + (" partitions" if "_" in column else "") for column in columns)
    cpu = [(name.replace("_", ", "), each) for name, each in found["cpu_microseconds"].items()]
    return {
        "The whole bill of a million events, dollars": [
            ("way in", *names),
            *((title, *(each[column] for column in columns)) for title, each in found["ways"].items()),
        ],
        "The functions' CPU time": [("function", "microseconds per event"), *cpu],
    }
