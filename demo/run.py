"""One run from beginning to end: deploy, count, report, and stay up for whoever wants to look around."""

from __future__ import annotations

import contextlib
import json
import shlex
import sys
import time
from collections.abc import Callable, Iterable
from typing import Final

from demo.example import Example
from demo.examples import play
from demo.options import Setup
from demo.platform.deployment import Deployment, deployed
from demo.report import report, summary
from demo.trial import count

KEEP_SECONDS: Final = 3600
_BASE_SECONDS: Final = 900
_SLOWEST_EVENTS_PER_SECOND: Final = 50


def run(setup: Setup) -> int:
    """Run the demo: exit status 0 when every count is right, otherwise 1.

    A log that cannot be read fails before anything is started.
    """
    options, progress = setup.options, setup.progress
    examples = play(setup, options.examples)
    limit = _BASE_SECONDS + sum(example.size for example in examples) // _SLOWEST_EVENTS_PER_SECOND
    stacks = [example.stack for example in examples]
    with deployed(progress, stacks, limit + (KEEP_SECONDS if options.keep else 0)) as deployment:
        print(f"Deployed {', '.join(stacks)} to an emulator with the CDK CLI ({progress.seconds:.0f} s)", flush=True)
        result = count(examples, deployment, progress, priced=bool(options.report))
        if options.report:
            text = json.dumps(report(result), indent=2, ensure_ascii=False)
            options.report.write_text(text + "\n", encoding="utf-8")
            progress(f"wrote {options.report}")
        print(summary(result), flush=True)
        if options.keep:
            keep(deployment, examples)
        else:
            print("Your own log: make demo LOG=access.log DUPLICATES=0.2     Look around: make demo KEEP=1", flush=True)
    return 1 if result.differences() else 0


def keep(deployment: Deployment, examples: Iterable[Example], sleep: Callable[[float], None] = time.sleep) -> None:
    """Print what is running and commands to try on it, for a shell, and wait until interrupted, at most an hour."""
    instructions = [
        "",
        f"Everything stays up for {KEEP_SECONDS // 60} minutes, or until Ctrl-C.",
        *(f"The live page of {stack}: {url}" for stack, url in deployment.page_urls().items()),
        "In another terminal, in the project's directory:",
        "",
        *(f"export {name}={shlex.quote(value)}" for name, value in deployment.emulator.address().items()),
        f'counters() {{ PYTHONPATH=lambdas {shlex.quote(sys.executable)} -m counters_cli.main "$@"; }}',
    ]
    for example in examples:
        instructions.append(f"export COUNTERS_TABLE={shlex.quote(deployment.table(example.stack))}")
        instructions += [f"counters {command}" for command in example.commands()]
    print("\n".join(instructions), flush=True)
    # Ctrl-C is the way to end it, not an error.
    with contextlib.suppress(KeyboardInterrupt):
        sleep(KEEP_SECONDS)
