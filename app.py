"""The example app: `cdk deploy` it, or read the stacks in `infra/examples` to see how the constructs are used."""

from __future__ import annotations

import sys
from pathlib import Path

# A clone is enough: the two source roots need not be installed.
sys.path[:0] = [str(Path(__file__).resolve().parent / root) for root in ("infra", "lambdas")]

from aws_cdk import App  # noqa: E402

from examples.stacks import stacks  # noqa: E402

app = App()
for name, stack in stacks().items():
    # `python app.py CountersJobs` synthesizes one stack, in less time.
    if not sys.argv[1:] or name in sys.argv[1:]:
        stack(app, name)
app.synth()
