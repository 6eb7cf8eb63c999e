"""The example stacks, deployed into an emulator for the length of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from counters_cli import emulator as cdk
from counters_cli.emulator import SERVER, Emulator
from demo.cost import units_written
from demo.terminal import Progress

_KILLING: Final = Path(__file__).with_name("killing_server.py")
PROJECT: Final = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Deployment:
    """The deployed stacks, with their outputs by stack name."""

    emulator: Emulator
    outputs: Mapping[str, Mapping[str, str]]

    def table(self, stack: str) -> str:
        return self.outputs[stack]["TableName"]

    def page_urls(self) -> dict[str, str]:
        endpoint = f"{self.emulator.endpoint_url}/_aws/execute-api"
        return {
            stack: f"{endpoint}/{outputs['ApiId']}/$default/"
            for stack, outputs in self.outputs.items()
            if "ApiId" in outputs
        }

    def table_units(self, stack: str) -> Counter[str]:
        """Write units of all changes of a stack's table, by type."""
        table = self.emulator.client("dynamodb").describe_table(TableName=self.table(stack))["Table"]
        return units_written(self.emulator.client("dynamodbstreams"), table["LatestStreamArn"])


@contextmanager
def deployed(progress: Progress, stacks: Sequence[str], max_seconds: int) -> Iterator[Deployment]:
    """Deploy stacks to an emulator that kills each aggregator once; nothing is left after `max_seconds`."""
    progress("starting the emulator")
    with Emulator.start(_KILLING, SERVER, max_seconds=max_seconds) as emulator:
        cdk.bootstrap(emulator)
        progress(f"deploying to {emulator.endpoint_url} with the CDK CLI")
        app = f"python3 app.py {' '.join(stacks)}"
        yield Deployment(emulator, cdk.deploy(emulator, PROJECT, app=app))
