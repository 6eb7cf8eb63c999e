"""Callers that read and post only what is their own: fields that an authorizer fills in."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final

from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_apigatewayv2_authorizers as authorizers

from dynamodb_counters._declarations import Declaration, Event
from dynamodb_counters._reads.question import fields_of, resources_of
from dynamodb_counters.errors import InvalidArgumentError

# Where API Gateway puts what an authorizer knows, by the first part of a path.
# https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
_GIVEN_BY: Final[dict[str, tuple[type, ...]]] = {
    "claims": (authorizers.HttpJwtAuthorizer, authorizers.HttpUserPoolAuthorizer),
    "lambda": (authorizers.HttpLambdaAuthorizer,),
    "iam": (authorizers.HttpIamAuthorizer,),
}
_IAM: Final = ("accountId", "callerId", "principalOrgId", "userArn", "userId")
_ALLOWED: Final = "a mapping of fields to claims, such as {'customer': 'claims.sub'}"


def require_tenant(tenant: object, authorizer: apigateway.IHttpRouteAuthorizer) -> Mapping[str, str]:
    """Return the claim of each bound field; refuse one that the authorizer cannot give."""
    if tenant is None:
        return {}
    if not isinstance(tenant, Mapping) or not tenant:
        raise InvalidArgumentError("tenant", tenant, _ALLOWED)
    for field, path in tenant.items():
        if not isinstance(field, str) or not field or not isinstance(path, str):
            raise InvalidArgumentError("tenant", tenant, _ALLOWED)
        source, _, name = path.partition(".")
        if not name or not isinstance(authorizer, _GIVEN_BY.get(source, ())):
            given = [source for source, kinds in _GIVEN_BY.items() if isinstance(authorizer, kinds)]
            allowed = (
                f"{given[0]}.NAME, as the authorizer gives" if given else "None: the authorizer identifies no caller"
            )
            raise InvalidArgumentError("tenant", path, allowed)
        if source == "iam" and name not in _IAM:
            raise InvalidArgumentError("tenant", path, f"one of {', '.join(f'iam.{one}' for one in _IAM)}")
    return tenant


def require_posted(
    tenant: object, mode: str, authorizer: apigateway.IHttpRouteAuthorizer, event: Event
) -> Mapping[str, str]:
    """Return the claim of each bound attribute; refuse one outside the event's key, by which events differ."""
    if tenant is not None and mode == "direct":
        raise InvalidArgumentError("tenant", tenant, "None in direct mode, which checks nothing")
    bound = require_tenant(tenant, authorizer)
    for field in bound:
        if field not in event.fields:
            raise _unbound(field, event, event.fields)
    _require_apart(bound, event)
    return bound


def require_served(tenant: Mapping[str, str], served: Iterable[Declaration | Event]) -> None:
    """Refuse whatever could not be limited to one tenant."""
    for declared in served:
        # A listing of events that are items of their own is limited by the partition key alone.
        fields = fields_of(declared, resources_of(declared)[0])[1] or ()
        for field in tenant:
            if field not in fields:
                raise _unbound(field, declared, fields)
        if isinstance(declared, Event):
            _require_apart(tenant, declared)


def tenant_environment(tenant: Mapping[str, str]) -> dict[str, str]:
    """Return the variable that names a function's tenants, if it has any."""
    return {"TENANT": json.dumps(dict(tenant), separators=(",", ":"), sort_keys=True)} if tenant else {}


def _require_apart(tenant: Mapping[str, str], event: Event) -> None:
    """Refuse packed events of which tenants share logs: a cold writer or reader of one would read those of all."""
    if tenant and event.packed is not None and event.packed.tenant not in tenant:
        allowed = f"a bound field, {' or '.join(map(repr, tenant))}, as Packed.tenant of {event.name!r}"
        raise InvalidArgumentError("tenant", event.packed.tenant, allowed)


def _unbound(field: str, declared: Declaration | Event, fields: tuple[str, ...]) -> InvalidArgumentError:
    return InvalidArgumentError(
        "tenant", field, f"a field of {declared.name!r}, which has {', '.join(fields) or 'none'}"
    )
