"""Conditions of updates: none changes an item of another declaration, or is done twice when its answer was lost.

A client sends such an update again. An item keeps the nonces of its latest updates, newest first; an update shifts in
its own, on condition that it is not among them. More updates than are kept may lie between a request and its
repetition. So a nonce begins with the time, and only the newest few kept may be later than it: a repetition that finds
its nonce gone finds too many later ones.

The reason is that fewer than half may be. Say that all kept came after mine. An earlier one can only follow mine while
mine is among those newest few, so of those kept only as many are earlier, and too many are later.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import uuid4

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._clients import may_be_done, may_pass, sending_once
from dynamodb_counters._items.table_schema import NONCE_PREFIX, TYPE
from dynamodb_counters._table import Table
from dynamodb_counters.errors import CountersError, InvalidArgumentError, UnavailableError

KEPT: Final = 16
_LATER: Final = 7
"""How many may be later: at 1,000 updates per second, all that an item takes, a request may be 7 ms under way."""

_NONCES: Final = [f"{NONCE_PREFIX}{place}" for place in range(KEPT)]
_TIME_DIGITS: Final = 13
_LOST: Final = "AnswersLost"

_latest = [0]
"""Microseconds of this process's latest nonce: they ascend even while its clock stands still."""

_NONE: Final = {"S": "0"}
_NAMES: Final = {f"#c{place}": name for place, name in enumerate(_NONCES)}
_SHIFT: Final = ", ".join(
    ["#c0 = :nonce", *(f"#c{place} = if_not_exists(#c{place - 1}, :none)" for place in range(1, KEPT))]
)
_KNOWN: Final = [f"#c{place} {'=' if place < _LATER else '>='} :nonce" for place in range(KEPT)]
_IS_NEW: Final = f"NOT ({' OR '.join(_KNOWN)})"


def only_own(request: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An update on condition that no other declaration has written the item."""
    is_own = "(attribute_not_exists(#own) OR #own = :own)"
    return conditional(request, is_own, {"#own": TYPE}, {":own": {"S": name}})


def conditional(
    request: Mapping[str, Any], condition: str, names: Mapping[str, str], values: Mapping[str, Any]
) -> dict[str, Any]:
    """An update on a further condition, with its placeholders."""
    conditions = [condition, *([request["ConditionExpression"]] if "ConditionExpression" in request else [])]
    return {
        **request,
        "ConditionExpression": " AND ".join(conditions),
        "ExpressionAttributeNames": {**request["ExpressionAttributeNames"], **names},
        "ExpressionAttributeValues": {**request["ExpressionAttributeValues"], **values},
    }


def item_of(refusal: ClientError) -> Mapping[str, Any]:
    answer: dict[str, Any] = dict(refusal.response)
    return answer.get("Item") or {}


def writer_of(item: Mapping[str, Any], name: str) -> str:
    return str(item.get(TYPE, {}).get("S", name))


def require_own(item: Mapping[str, Any], name: str) -> None:
    writer = writer_of(item, name)
    if writer != name:
        raise InvalidArgumentError("aggregate", name, f"{writer!r}, which has written the item of this group")


def update_once(table: Table, request: Mapping[str, Any], done: str) -> Mapping[str, Any]:
    """Return the item after an update, which is sent again only where it was refused.

    `UnavailableError` if it may be `done`: its answer is lost. Whether its condition held is the caller's to see.
    """
    failure: Exception | None = None
    for _ in table.tries():
        try:
            with sending_once(table.client):
                answer: Any = table.client.update_item(
                    **request,
                    ReturnValues="ALL_NEW",
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
        except (ClientError, BotoCoreError) as error:
            if may_be_done(error):
                raise UnavailableError(f"may have been {done}: the answer was lost: {error}") from error
            if not may_pass(error):
                raise
            failure = error
        else:
            return dict(answer["Attributes"])
    raise UnavailableError(f"was not {done}: {failure}") from failure


def new_nonce(table: Table, item: Mapping[str, Any] | None = None) -> str:
    """A nonce that no other update has, later than those of the item."""
    kept = [] if item is None else [item[name]["S"] for name in _NONCES if name in item]
    before = max([_latest[0], *(int(nonce[:_TIME_DIGITS], 16) for nonce in kept)])
    _latest[0] = max(int(table.clock() * 1_000_000), before + 1)
    return f"{_latest[0]:0{_TIME_DIGITS}x}{uuid4().hex[:6]}"


def once(request: Mapping[str, Any], nonce: str) -> dict[str, Any]:
    """An UpdateItem that starts with SET, made to be done once however often it is sent."""
    return {
        **conditional(request, _IS_NEW, _NAMES, {":nonce": {"S": nonce}, ":none": _NONE}),
        "UpdateExpression": f"SET {_SHIFT}, {request['UpdateExpression'].removeprefix('SET ')}",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


def met(error: ClientError, nonce: str, since: Mapping[str, Any] | None = None) -> tuple[Mapping[str, Any], bool]:
    """The item that refused an update, and whether it had been done before; `CountersError` if unknown."""
    item = item_of(error)
    kept = [item.get(name, _NONE) for name in _NONCES]
    done = {"S": nonce} in kept
    # Changes of the item since then are known if a nonce of then is still kept.
    known = since is not None and since.get(_NONCES[0], _NONE) in kept
    if not (done or known) and dict(error.response.get("ResponseMetadata", {})).get(_LOST, True):
        raise CountersError("an answer was lost, and too many updates followed to know whether it was done") from error
    return item, done


def is_new(item: Mapping[str, Any], nonce: str) -> bool:
    """Whether an item that refused an update has not done it before: what its condition on the nonce says."""
    kept = [item.get(name, _NONE)["S"] for name in _NONCES]
    return nonce not in kept[:_LATER] and max(kept[_LATER:]) < nonce


def watch_for_lost_answers(table: Table) -> None:
    """Have the client say, with each answer, whether one to the same request was lost before it."""
    table.client.meta.events.register("response-received.dynamodb.UpdateItem", _note, unique_id=__name__)


def _note(context: dict[str, Any], parsed_response: dict[str, Any] | None, **_: Any) -> None:
    if parsed_response is None or parsed_response["ResponseMetadata"]["HTTPStatusCode"] >= 500:  # noqa: PLR2004
        context[_LOST] = True
    else:
        parsed_response["ResponseMetadata"][_LOST] = context.get(_LOST, False)
