"""Whether a deployment is for a local emulator."""

from __future__ import annotations

from typing import Final

from constructs import Construct

_CONTEXT: Final = "single_shard_stream"


def emulated(scope: Construct) -> bool:
    """Tell whether the context flag says that streams have one shard and events do not name it."""
    return str(scope.node.try_get_context(_CONTEXT)).lower() == "true"
