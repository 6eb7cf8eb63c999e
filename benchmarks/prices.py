"""What AWS charges on demand in us-east-1, in US dollars: public prices as of November 2026.

DynamoDB's are in `simulation.dynamodb.capacity`; a function that reads a stream does so free of charge.

- https://aws.amazon.com/lambda/pricing/
- https://aws.amazon.com/sqs/pricing/
- https://aws.amazon.com/api-gateway/pricing/
"""

from __future__ import annotations

from typing import Final

LAMBDA_GB_SECOND: Final = 0.0000133334
"""ARM."""

LAMBDA_REQUEST: Final = 0.20 / 1e6
SQS_REQUEST: Final = 0.40 / 1e6
"""Of a standard queue, up to 64 KB."""

HTTP_API_REQUEST: Final = 1.00 / 1e6
"""Up to 512 KB."""

GB_PER_CPU: Final = 1769 / 1024
"""A function has a whole CPU at this memory size, and less in proportion: a second of CPU costs the same at any size.
https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html"""


def cpu_dollars(seconds: float) -> float:
    return seconds * GB_PER_CPU * LAMBDA_GB_SECOND
