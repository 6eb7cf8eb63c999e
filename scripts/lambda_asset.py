"""Lists what goes into the Lambda asset: `python -m scripts.lambda_asset` writes docs/lambda-asset.md."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import PackageMetadata, distribution
from pathlib import Path
from typing import Final

_PROJECT: Final = Path(__file__).resolve().parents[1]
# A clone is enough, as for app.py: the two source roots need not be installed.
sys.path[:0] = [str(_PROJECT / root) for root in ("infra", "lambdas")]

from cdk_dynamodb_counters import _staging  # noqa: E402

LIST: Final = _PROJECT / "docs" / "lambda-asset.md"
_OWN: Final = "dynamodb-counters"


def contents() -> str:
    """Return the list as Markdown."""
    return "\n".join(
        [
            "# Contents of the Lambda asset",
            "",
            "Each function's code is copied from the Python that runs synth. **Run it with 3.14**, the functions' own:",
            "bytecode is then added, without which cold starts take half as much CPU again. With the",
            "[locked](../requirements.txt) versions it holds this (`make lambda-asset`). The live page adds",
            "`counters_lambda/page`, with [uPlot](https://github.com/leeoniya/uPlot) 1.6.32 (MIT): `uplot.LICENSE`.",
            "",
            "| distribution | version | licence | in the asset | licence files |",
            "|---|---|---|---|---|",
            *_rows(),
            "",
        ]
    )


def _rows() -> Iterator[str]:
    for name in dict.fromkeys(_staging.DISTRIBUTIONS.values()):
        modules = ", ".join(f"`{module}`" for module, of in _staging.DISTRIBUTIONS.items() if of == name)
        licences = [f"`{path}`" for _, path in _staging.licence_files() if path.parts[1] == name]
        version, licence = ("this", "Apache-2.0") if name == _OWN else _described(distribution(name).metadata)
        yield f"| {name} | {version} | {licence} | {modules} | {', '.join(licences)} |"


def _described(metadata: PackageMetadata) -> tuple[str, str]:
    licence = "License-Expression" if "License-Expression" in metadata else "License"
    return metadata["Version"], metadata[licence]


if __name__ == "__main__":
    LIST.write_text(contents(), encoding="utf-8")
