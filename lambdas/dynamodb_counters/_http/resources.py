"""The resources of the counter API: which declarations a stranger may ask, and how a request asks them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl

from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations import Aggregate, Declaration, Event, Window
from dynamodb_counters._declarations.composites import group_fields
from dynamodb_counters._fold.contributions import MAX_GROUP_BYTES
from dynamodb_counters._http.documents import (
    MAX_PAGE_BYTES,
    Document,
    Documents,
    count_document,
    fitting,
    group_document,
    plain,
    require_cost,
)
from dynamodb_counters._http.requests import ProblemError, bad_request, filled_in
from dynamodb_counters._reads.question import SPAN, Question, fields_of, options_of, resources_of
from dynamodb_counters._reads.window_reader import count_intervals
from dynamodb_counters._timeline.tiers import plan_queries

PATHS: Final[Mapping[str, str]] = {
    "get": "/v1/{}",
    "series": "/v1/{}/series",
    "top": "/v1/{}/top",
    "events": "/v1/{}/events",
}
"""By what is asked of a declaration: its path."""

MAX_BATCH: Final = 100
BATCH: Final[Mapping[str, tuple[str, tuple[str, ...], type[Declaration]]]] = {
    "groups": ("aggregate", (), Aggregate),
    "windows": ("window", SPAN, Window),
}
"""By member of a batch: the member of an entry that names a declaration, its options, and the declarations."""

Bound: TypeAlias = Mapping[str, str]
_NONE: Final[Bound] = MappingProxyType({})


class CountResources:
    """Counts and events of the given declarations, of no values but those to which a caller is `bound`."""

    def __init__(
        self, counters: Counters, declarations: Iterable[Declaration | Event], clock: Callable[[], float]
    ) -> None:
        self._documents = Documents(counters, clock)
        self._served = tuple(declarations)

    def read(self, name: str, query_string: str, bound: Bound = _NONE, *, resource: str = "get") -> Document:
        """Answer a request about a declaration."""
        what = "counts" if resource == "get" else resource
        declared = self._declared(name, what, [each for each in self._served if resource in resources_of(each)])
        if unbound := bound.keys() - {*(fields_of(declared, resource)[1] or ())}:
            detail = f"{min(unbound)!r}, which the caller's claim decides, is no parameter here"
            raise ProblemError(HTTPStatus.FORBIDDEN, detail)
        values, options = _parameters(query_string), dict[str, str]()
        for option in values.keys() & {*options_of(declared, resource)}:
            options[option] = values.pop(option)
        return self._documents.answer(self._question(declared, resource, options, filled_in(values, bound)))

    def batch(self, document: object, bound: Bound = _NONE) -> Document:
        """Read groups of any aggregates and spans of any windows, as a request's body lists them."""
        is_object = isinstance(document, Mapping) and document and document.keys() <= BATCH.keys()
        entries: Mapping[str, list[object]] = document if is_object else {}  # type: ignore[assignment]
        if not entries or not all(isinstance(kind, list) and 1 <= len(kind) <= MAX_BATCH for kind in entries.values()):
            expected = f"an object with members 'groups' or 'windows', arrays of 1 to {MAX_BATCH}"
            raise bad_request(f"invalid body: expected {expected}")
        groups, windows = (
            [self._requested(kind, index, entry, bound) for index, entry in enumerate(entries.get(kind, ()))]
            for kind in BATCH
        )
        results = self._documents.counters.get_many([(each.declared, each.values) for each in groups])
        answers = {
            "groups": [group_document(each.declared.name, group) for each, group in zip(groups, results, strict=True)],
            "windows": self._windows(windows),
        }
        listed = [*answers["groups"], *answers["windows"]]
        if len(fitting(listed)) < len(listed):
            raise bad_request(f"the answer takes more than {MAX_PAGE_BYTES} bytes of JSON: request fewer")
        return {kind: answers[kind] for kind in entries}

    def _windows(self, questions: Sequence[Question]) -> list[Document]:
        """Count spans of windows, all at once."""
        spans = [(each.declared, each.values, each.interval) for each in questions]
        require_cost([span for window, _, interval in spans for span in plan_queries(window._kept_tiers, interval)])
        counts = count_intervals(self._documents.table, spans, consistent=False)
        return [count_document(each, plain(count)) for each, count in zip(questions, counts, strict=True)]

    def _question(
        self, declared: Any, resource: str, options: Mapping[str, str], values: Mapping[str, str]
    ) -> Question:
        return Question.parse(declared, resource, options, values, self._documents.clock(), is_bounded=True)

    def _declared(self, name: str, what: str, served: Iterable[Declaration | Event]) -> Any:
        by_name = {each.name: each for each in served}
        if name not in by_name:
            detail = f"no {what} {name!r:.120}; available: {', '.join(by_name) or 'none'}"
            raise ProblemError(HTTPStatus.NOT_FOUND, detail)
        return by_name[name]

    def _requested(self, kind: str, index: int, entry: object, bound: Bound) -> Question:
        """Parse an entry of a batch."""
        where, (member, options, declarable) = f"{kind}[{index}]", BATCH[kind]
        if not isinstance(entry, Mapping) or not {member, "values"} <= entry.keys() <= {member, "values", *options}:
            allowed = f", and of {', '.join(options)}" if options else ""
            raise bad_request(f"invalid {where}: expected an object with members {member!r} and 'values'{allowed}")
        texts = {name: value for name, value in entry.items() if name != "values"}
        is_object = isinstance(entry["values"], Mapping)
        values: dict[str, Any] = filled_in(entry["values"], bound) if is_object else {"values": None}
        if not all(isinstance(value, str) for value in (*texts.values(), *values.values())):
            raise bad_request(f"invalid {where}: expected strings")
        if sum(map(len, values.values())) > MAX_GROUP_BYTES:
            raise bad_request(f"invalid {where}.values: expected at most {MAX_GROUP_BYTES} bytes, as a group has")
        declared = self._declared(texts.pop(member), member, batched(self._served, declarable))
        question = self._question(declared, "get", texts, values)
        if not question.is_whole:
            raise bad_request(f"invalid {where}.values: expected a value for each of {', '.join(declared.fields)}")
        return question


def batched(served: Iterable[Declaration | Event], kind: type[Declaration]) -> list[Declaration]:
    """The declarations of a kind whose groups are no parts of another measure."""
    return [each for each in served if isinstance(each, kind) and group_fields(each) == each.fields]


def _parameters(query_string: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(query_string, keep_blank_values=True, errors="strict", max_num_fields=100)
    except ValueError:
        raise bad_request("invalid query string: expected UTF-8 with at most 100 parameters") from None
    by_name = dict(pairs)
    if len(by_name) < len(pairs):
        raise bad_request("a parameter is given more than once")
    return by_name
