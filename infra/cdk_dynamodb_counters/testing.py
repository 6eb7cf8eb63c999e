"""For the snapshot tests of your stacks: templates that change only when what is deployed changes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from aws_cdk import Stack
from aws_cdk.assertions import Template

from dynamodb_counters._declarations.codec import decode
from dynamodb_counters.errors import InvalidArgumentError

__all__ = ["stable_template"]

_HASH: Final = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_VERSION: Final = re.compile(r"(CurrentVersion[0-9A-F]{8})[0-9a-f]{32}$")
"""The logical id of a function's current version ends with a hash of its code."""

_ENCODED: Final = ("AGGREGATES", "DECLARATIONS", "EVENTS")
_METADATA: Final = {"Resources": "CDKMetadata", "Conditions": "CDKMetadataAvailable"}


def stable_template(stack: Stack) -> dict[str, Any]:
    """Return the template of a stack for a snapshot: equal for equal stacks, whatever version the packaged code has.

    Hashes of assets, which change with every release of any packaged file, are masked: in asset keys of functions and
    layers, and in the logical ids of current versions. The functions' encoded declarations are written as Python. The
    resource by which the CDK reports its own version is left out.

    Parameters
    ----------
    stack : Stack
        The stack; it is synthesized.

    Examples
    --------
    >>> from aws_cdk import App, Stack
    >>> stable_template(Stack(App(analytics_reporting=False), "Empty"))["Parameters"]["BootstrapVersion"]["Type"]
    'AWS::SSM::Parameter::Value<String>'
    """
    template = dict(Template.from_stack(stack).to_json())
    for section, name in _METADATA.items():
        if name in template.get(section, {}):
            rest = {key: value for key, value in template.pop(section).items() if key != name}
            template |= {section: rest} if rest else {}
    stable: dict[str, Any] = masked(template)
    return stable


def masked(value: Any) -> Any:
    """Mask what depends on packaged code in a part of a template."""
    if isinstance(value, str):
        return _VERSION.sub(r"\1<hash>", _HASH.sub("<hash>", value))
    if isinstance(value, Mapping):
        return {masked(name): _readable(name, part) for name, part in value.items()}
    if isinstance(value, list):
        return [masked(part) for part in value]
    return value


def _readable(name: str, value: Any) -> Any:
    if name in _ENCODED and isinstance(value, str) and value:
        try:
            return [repr(declaration) for declaration in decode(value)]
        except InvalidArgumentError:
            # A variable of another function.
            pass
    return masked(value)
