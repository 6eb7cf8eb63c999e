"""The runtime as Lambda code."""

from __future__ import annotations

import re
from typing import Final

from aws_cdk import aws_lambda as lambda_

from cdk_dynamodb_counters._staging import staged_code
from dynamodb_counters.errors import InvalidArgumentError

_PREFIX: Final = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.-]*)?")


def runtime_code(*, prefix: str = "") -> lambda_.Code:
    """Return the runtime as code for a function or layer of your own.

    The Python files are copied from the environment that runs synth: nothing is built or downloaded. The asset hash
    depends only on file names and contents, so machines with the same package versions produce the same hash.

    Parameters
    ----------
    prefix : str, optional
        Directory for the files, such as ``"python"`` for a layer. Default: the asset's root.

    Returns
    -------
    Code
        ``dynamodb_counters``, AWS Lambda Powertools and their dependencies.

    Raises
    ------
    InvalidArgumentError
        If `prefix` is not a directory name.

    Examples
    --------
    >>> code = runtime_code()
    """
    if not isinstance(prefix, str) or not _PREFIX.fullmatch(prefix):
        raise InvalidArgumentError("prefix", prefix, "a directory name such as 'python', or ''")
    return staged_code(prefix)
