"""``python -m benchmarks``: measure everything, print it, write the page and a report."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]

# A clone is enough: the two source roots need not be installed.
sys.path[:0] = [str(PROJECT / root) for root in ("infra", "lambdas")]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument(
        "--report",
        type=Path,
        default=PROJECT / "build" / "benchmarks.json",
        help="write every figure as JSON to this file, after each section (default: build/benchmarks.json)",
    )
    parser.add_argument("--docs", type=Path, default=PROJECT / "docs", help="where the page goes (default: docs)")
    parser.add_argument("--tiny", action="store_true", help="tiny workloads, to see that it runs")
    parser.add_argument("--again", type=Path, help="measure nothing: print and write what this report holds")
    parser.add_argument("--cost", action="store_true", help="measure nothing: write the cost of a month into the page")
    parser.add_argument("--no-engine", action="store_true", help="leave out DynamoDB Local")
    options = parser.parse_args(arguments)
    # No request of a benchmark may reach an account.
    os.environ |= {
        **dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "testing"),
        "AWS_DEFAULT_REGION": "us-east-1",
        # Every construct would warn again.
        "JSII_SILENCE_WARNING_DEPRECATED_NODE_VERSION": "true",
        "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20",
    }

    from benchmarks import cost_page, page  # noqa: PLC0415  # Needs the path set above.
    from benchmarks.run import TINY, Sizes, run  # noqa: PLC0415

    if options.cost:
        cost_page.write(options.docs)
        return 0
    start = time.perf_counter()

    def say(text: str) -> None:
        print(f"[{time.perf_counter() - start:4.0f} s] {text}", file=sys.stderr, flush=True)

    def keep(report: object) -> None:
        options.report.parent.mkdir(parents=True, exist_ok=True)
        options.report.write_text(json.dumps(report, indent=2) + "\n")

    if options.again:
        report = json.loads(options.again.read_text())
    else:
        report = run(TINY if options.tiny else Sizes(), say, keep, with_engine=not options.no_engine)
    if report["failed"]:
        for title, error in report["failed"].items():
            say(f"not measured: {title}: {error}")
        say(f"no page is written; the other sections are in {options.again or options.report}")
        return 1
    print(page.terminal(report))
    page.write(report, options.docs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
