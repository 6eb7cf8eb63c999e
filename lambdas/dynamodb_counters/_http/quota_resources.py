"""Quotas over HTTP: calls are taken and given back, by services that need no process of ours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final
from uuid import uuid4

from dynamodb_counters._declarations import Quota
from dynamodb_counters._declarations.checks import require_count
from dynamodb_counters._declarations.quotas import MOST_CALLS
from dynamodb_counters._http.parameters import QueryParameters, body_values
from dynamodb_counters._http.problems import ProblemError, bad_request
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.times import utc
from dynamodb_counters._writes.quota_calls import Lease, QuotaCalls

LEASE: Final = "[A-Za-z0-9_.:-]{1,64}"
"""Identities of leases: they are part of keys, in which nothing needs escaping then."""


class QuotaResources:
    """The given quotas; no others can be changed, and of others' groups none by a caller whose fields are bound."""

    def __init__(self, table: Table, quotas: Iterable[Quota]) -> None:
        self._table = table
        self._quotas = {quota.name: quota for quota in quotas}

    def state(self, name: str, query_string: str, bound: Mapping[str, str]) -> dict[str, Any]:
        quota = self._quota(name)
        return self._answer(quota, QueryParameters.parse(query_string, quota.by, (), bound).values(quota.by))

    def take(self, name: str, document: object, bound: Mapping[str, str]) -> dict[str, Any]:
        quota, body, values = self._read(name, document, bound, {"n", "id"})
        n, lease = body.get("n", 1), body.get("id", uuid4().hex)
        require_count("n", n, MOST_CALLS)
        found = QuotaCalls(self._table, quota, values).take(_identity("id", lease), n)
        if found is not None and found != Lease(n):
            raise _other(lease, found)
        return self._answer(quota, values, lease=lease, granted=found is not None)

    def give_back(self, name: str, document: object, bound: Mapping[str, str]) -> dict[str, Any]:
        quota, body, values = self._read(name, document, bound, {"n", "lease"})
        n, lease = body.get("n"), _identity("lease", body.get("lease"))
        if n is not None:
            require_count("n", n, MOST_CALLS)
        found = QuotaCalls(self._table, quota, values).give_back(lease, n)
        if found is None:
            raise ProblemError(HTTPStatus.NOT_FOUND, f"no lease {lease!r} in this period")
        if found.given_back != (n or found.calls):
            raise _other(lease, found)
        return self._answer(quota, values, lease=lease, given_back=found.given_back)

    def _quota(self, name: str) -> Quota:
        if name not in self._quotas:
            available = ", ".join(self._quotas) or "none"
            raise ProblemError(HTTPStatus.NOT_FOUND, f"no quota {name!r:.120}; available: {available}")
        return self._quotas[name]

    def _read(
        self, name: str, document: object, bound: Mapping[str, str], members: set[str]
    ) -> tuple[Quota, Mapping[str, Any], dict[str, str]]:
        """The quota, the members of a body, and the group that it names."""
        quota, members = self._quota(name), {*members, "values"}
        if not isinstance(document, Mapping) or document.keys() - members:
            raise bad_request(f"invalid body: expected an object with members {', '.join(sorted(members))}")
        return quota, document, body_values("values", document.get("values", {}), quota.by, bound)

    def _answer(self, quota: Quota, values: Mapping[str, str], **more: Any) -> dict[str, Any]:
        period = quota._period(self._table.clock())
        reserved = QuotaCalls(self._table, quota, values).reserved(period)
        state = {"limit": quota.limit, "reserved": reserved, "left": max(0, quota.limit - reserved)}
        resets_at = utc(period.end).isoformat()
        return {"quota": quota.name, "values": values, **more, **state, "resets_at": resets_at}


def _identity(name: str, lease: object) -> str:
    if not isinstance(lease, str) or not re.fullmatch(LEASE, lease):
        raise bad_request(f"invalid {name}={lease!r:.120}: expected 1 to 64 letters, digits, '-', '_', '.' or ':'")
    return lease


def _other(lease: str, found: Lease) -> ProblemError:
    """The lease cannot become what is asked for."""
    back = "" if found.given_back is None else f" and gave {found.given_back} back"
    return ProblemError(HTTPStatus.CONFLICT, f"the lease {lease!r} took {found.calls} calls{back}: send another id")
