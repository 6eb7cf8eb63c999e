"""Python versions the handlers support."""

from __future__ import annotations

from typing import Final

from aws_cdk import aws_lambda as lambda_

RUNTIMES: Final = (
    lambda_.Runtime.PYTHON_3_11,
    lambda_.Runtime.PYTHON_3_12,
    lambda_.Runtime.PYTHON_3_13,
    lambda_.Runtime.PYTHON_3_14,
)
"""Oldest first; the last one is the default."""
