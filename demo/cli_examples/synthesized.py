"""Output of `cdk synth` for the blog's next deployment: a filter, and a measure more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from demo.cli_examples.blog import DECLARED, PHONES
from dynamodb_counters import Aggregate, Attr, Sum
from dynamodb_counters._declarations.codec import encode

BYTES = Aggregate("bytes", PHONES.source, pk="SITE", sk="BYTES", bytes=Sum("bytes"))
NEXT = (
    *(each for each in DECLARED if each.name != "phones"),
    replace(PHONES, where=Attr("device").ne("laptop")),
    BYTES,
)


@contextmanager
def synthesized() -> Iterator[None]:
    """Work in a folder that has a cdk.out."""
    variables = {"DECLARATIONS": encode(NEXT)}
    function = {
        "Type": "AWS::Lambda::Function",
        "Properties": {
            "Handler": "dynamodb_counters.handlers.aggregator.handler",
            "Environment": {"Variables": variables},
        },
    }
    with TemporaryDirectory() as folder, chdir(folder):
        Path("cdk.out").mkdir()
        Path("cdk.out", "Blog.template.json").write_text(json.dumps({"Resources": {"Function": function}}))
        yield
