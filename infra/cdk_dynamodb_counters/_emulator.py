"""The context flag for local emulators."""

from __future__ import annotations

from typing import Final

from constructs import Construct

_CONTEXT: Final = "single_shard_stream"


def is_emulated(scope: Construct) -> bool:
    """Whether the app targets an emulator, whose streams have a single shard that batches do not name."""
    return str(scope.node.try_get_context(_CONTEXT)).lower() == "true"
