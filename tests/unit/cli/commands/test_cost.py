"""``counters cost``: designs compared, other prices, a sample, and wrong input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.in_process import run

_PRICES = Path(__file__).parents[4] / "lambdas" / "dynamodb_counters" / "prices.toml"


def test_all_designs_with_their_dollars() -> None:
    done = run("cost", "--rate", "1000", "--groups", "50", "--skew", "1", "--json")
    assert (done.code, done.err) == (0, "")
    designs = {each["title"]: each for each in done.document["designs"]}
    assert len(designs) == 8
    own = designs["this: accept + watermark"]
    assert own["exact"]
    assert own["units_per_event"]["accept"] == {"write": 1.0, "read": 0.0}
    for each in designs.values():
        *parts, total = each["dollars_per_month"].values()
        assert total == pytest.approx(sum(parts))
    shown = run("cost", "--rate", "1000", "--groups", "50", "--skew", "1").out
    assert all(title in shown for title in designs)
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= 100


def test_more_than_the_table_s_quota_does_not_keep_up() -> None:
    last = run("cost", "--rate", "60000", "--groups", "1000000").out.splitlines()[-1]
    assert last.startswith("does not keep up; limit: write units of the table; to move it: its quota")
    raised = run("cost", "--rate", "60000", "--groups", "1000000", "--table-units", "1e6").out.splitlines()[-1]
    assert raised.startswith("keeps up")


def test_pages_are_recommended_where_they_are_cheaper() -> None:
    arguments = ("cost", "--rate=100", "--gather=30", "--groups=1000", "--groups=1000000", "--window=1m/24h")
    few, many = run(*arguments, "--json").document["pages"]
    assert (few["groups"], many["groups"]) == (1000, 1_000_000)
    assert few["pages"] < few["items"] / 5
    assert many["pages"] == pytest.approx(many["items"], rel=0.1)
    lines = run(*arguments).out.splitlines()
    assert any(line.startswith("1,000 groups") and "pages=True, " in line for line in lines)
    assert any(line.startswith("1,000,000 groups") and "items: pages gain nothing (0.9" in line for line in lines)
    longer = run(*arguments, "--group-bytes=100", "--json").document["pages"][0]
    assert longer["pages"] > 1.5 * few["pages"]
    assert "counting, dollars" not in run("cost", "--rate=1", "--ranked").out


def test_the_ceiling_names_its_bottleneck_and_the_setting_that_moves_it() -> None:
    arguments = ("cost", "--rate=3190", "--groups=1", "--own-key")
    most = run(*arguments, "--json").document["designs"][0]["at_most"]
    assert most["events_per_second"] == pytest.approx(998, abs=2)
    assert most["bottleneck"] == "partition key of the events"
    assert "does not keep up; limit: partition key of the events; to move it: " in run(*arguments).out


def test_an_idle_deployment_costs_what_is_fixed_construct_by_construct() -> None:
    found = run("cost", "--rate=0", "--door=queue", "--json").document["dollars_per_month"]
    aggregator, ingest = found["StreamAggregator"], found["EventIngest"]
    assert aggregator["CloudWatch metrics"] == 0.3
    assert ingest["SQS"] == pytest.approx(0.26, abs=0.01)
    assert found["total"] == pytest.approx(sum(aggregator.values()) + sum(ingest.values()))
    shown = run("cost", "--rate=0", "--door=queue").out
    assert [line.split()[0] for line in shown.splitlines()[2:4]] == ["StreamAggregator", "EventIngest"]


def test_packed_events_windows_and_doors() -> None:
    done = run("cost", "--rate=1000", "--packed=5000", "--gather=5", "--window=1m/24h", "--door=http", "--json")
    first, second, *_ = done.document["designs"]
    assert (first["title"], second["title"]) == ("this: packed", "this: accept + watermark")
    assert first["dollars_per_month"]["API Gateway"] == pytest.approx(2628)


def test_other_prices(tmp_path: Path) -> None:
    dear = tmp_path / "dear.toml"
    dear.write_text(_PRICES.read_text().replace("dollars = 0.625", "dollars = 6.25"))
    arguments = ("cost", "--rate", "10", "--json")
    usual, other = (run(*arguments, *more).document["designs"][0] for more in ((), ("--prices", str(dear))))
    writes = [each["dollars_per_month"]["DynamoDB writes"] for each in (usual, other)]
    assert writes[1] == pytest.approx(10 * writes[0])


def test_a_sample_shows_how_large_events_are_and_how_they_pack(tmp_path: Path) -> None:
    sample = tmp_path / "events.jsonl"
    lines = [{"url": f"/{number % 9}", "id": f"{number:09}", "text": "same" * 300} for number in range(500)]
    sample.write_text("\n".join(map(json.dumps, lines)))
    done = run("cost", "--rate=100", "--packed=256", "--sample", str(sample), "--json")
    packed, plain, *_ = done.document["designs"]
    # 1.2 KB each, nearly all of it the same.
    assert plain["units_per_event"]["accept"]["write"] == 2.0
    assert packed["units_per_event"]["accept"]["write"] < 0.02


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ((), "Missing option '--rate'."),
        (("--rate", "nan"), "Invalid value for '--rate': 'nan' is no number"),
        (("--rate", "-1"), "Invalid value for '--rate': -1.0 is not in the range 0<=x<=1000000.0."),
        (("--rate", "x"), "Invalid value for '--rate': 'x' is not a valid float range."),
        (("--rate=1", "--window=1m"), "Invalid value for '--window': '1m': expected precision/length, such as 1m/24h"),
        (
            ("--rate=1", "--window=2m/1h"),
            "Invalid value for '--window': '2m/1h': expected a precision of 1s, 1m, 1h or 1d, and",
        ),
        (("--rate=1", "--write-shards=101"), "Invalid value for '--write-shards': 101 is not in the range 1<=x<=100."),
        (("--rate=1", "--concurrency=0"), "Invalid value for '--concurrency': 0 is not in the range x>=1."),
        (("--rate=1", "--door=window"), "Invalid value for '--door': 'window' is not one of"),
        (("--rate=1", "--prices=missing.toml"), "No such file or directory"),
        (("--rate=1", "--prices={wrong}"), "is no price file"),
        (("--rate=1", "--prices={few}"), "lacks"),
        (("--rate=1", "--sample=missing.jsonl"), "No such file or directory"),
        (("--rate=1", "--sample={wrong}"), "line 1"),
        (("--rate=1", "--sample={empty}"), "holds no events"),
    ],
)
def test_wrong_input_is_one_line(arguments: tuple[str, ...], line: str, tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("wrong", "few", "empty")}
    files["wrong"].write_text("what?\n")
    files["few"].write_text('date = 2026-01-01\nregion = "x"\n')
    files["empty"].write_text("")
    done = run("cost", *(each.format(**files) for each in arguments))
    assert (done.code, done.out) == (2, "")
    assert line in done.err
    assert done.err.count("\n") == 1
