"""The account that the caller's credentials name."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import boto3
from botocore.exceptions import BotoCoreError, ClientError

_BOOTSTRAP: Final = "/cdk-bootstrap/hnb659fds/version"


class AccountError(Exception):
    """Nothing can be deployed there."""


@dataclass(frozen=True)
class Account:
    """An account in a region; `endpoint_url` is an emulator's."""

    number: str
    region: str
    caller: str
    endpoint_url: str | None

    @property
    def emulated(self) -> bool:
        return self.endpoint_url is not None

    def client(self, service: str) -> Any:
        return _client(service, self.region)

    def url(self, api_id: str) -> str:
        """Where the default stage of an HTTP API answers."""
        if self.endpoint_url is not None:
            return f"{self.endpoint_url}/_aws/execute-api/{api_id}/$default"
        return str(self.client("apigatewayv2").get_api(ApiId=api_id)["ApiEndpoint"])


@cache
def _client(service: str, region: str) -> Any:
    return boto3.session.Session(region_name=region).client(service)  # type: ignore[call-overload]


def caller_account() -> Account:
    """Ask who the caller is; AccountError without credentials, or if the CDK has not been bootstrapped there."""
    session = boto3.session.Session()
    if session.region_name is None:
        raise AccountError("no region: set AWS_REGION, or choose a profile that has one")
    try:
        caller = _client("sts", session.region_name).get_caller_identity()
        _client("ssm", session.region_name).get_parameter(Name=_BOOTSTRAP)
    except (BotoCoreError, ClientError) as error:
        if "ParameterNotFound" in str(error):
            place = f"aws://{caller['Account']}/{session.region_name}"
            raise AccountError(f"the CDK is not bootstrapped: run `node_modules/.bin/cdk bootstrap {place}`") from None
        raise AccountError(str(error)) from error
    endpoint_url = os.environ.get("AWS_ENDPOINT_URL")
    return Account(caller["Account"], session.region_name, caller["Arn"], endpoint_url)
