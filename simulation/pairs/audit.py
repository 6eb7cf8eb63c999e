"""Readers against the truth: what they read of each name, what they are refused, and what waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import astuple, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import chain, product
from typing import Any

from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations import Aggregate, Declaration, TimeWeighted, Window
from dynamodb_counters._items.schema import BASELINE
from dynamodb_counters._reads.question import ORDERS, Question, kind_of
from dynamodb_counters._reads.rank_reads import read_ranks
from dynamodb_counters.errors import InvalidArgumentError, UncountedError
from dynamodb_counters.exactly_once import WATERMARK_PREFIX
from simulation.oracle.aggregates import DAY_BUCKET, Group, Groups, Parts, scores
from simulation.oracle.layout import held_groups
from simulation.pairs.apart import Backend
from simulation.pairs.declared import DECLARED, FAMILIES, NAMES, signature, with_below
from simulation.pairs.truth import Image, IsSpoiled, Truth, nonzero


def audit(
    backend: Backend,
    declared: Iterable[Declaration],
    *,
    whole: bool,
    truth: Truth,
    is_unknown: Callable[[Declaration, Group], bool] = lambda _declaration, _group: False,
    is_spoiled: IsSpoiled = lambda _: False,
    fails_for: str | None = "",
) -> list[str]:
    """Differences of reads from the truth; with `whole`, what is declared must be complete if it can be counted."""
    wrong = list(truth.wrong)
    counters = Counters(backend.name, client=backend.client, clock=backend.clock)
    for own in (candidate for candidate in declared if not is_spoiled(candidate)):
        wrong += _refusals(counters, own, truth, whole=whole)
    exact = set[str]()
    for name, entry in sorted(truth.entries.items()):
        declaration, is_complete = truth.registered[name], entry.state == "complete"
        if is_spoiled(declaration):
            continue
        want = truth.of(declaration) if is_complete else {}
        have = _read(truth, backend, counters, declaration, want, is_complete=is_complete)
        if not is_complete:
            wrong += [f"{name}: never counted, but it has {have}"] if entry.is_fresh and _counted(backend, name) else []
            continue
        wrong += [
            f"{name} {group}: expected {_text(want.get(group))}, read {_text(have.get(group))}"
            for group in sorted({*want, *have})
            if want.get(group, {}) != have.get(group, {}) and not is_unknown(declaration, group)
        ]
        exact |= set() if any(is_unknown(declaration, group) for group in {*want, *have}) else {name}
        expected, actual = truth.must_wait(declaration), truth.orders_waiting(name)
        wrong += [f"{name}: expected to wait {expected}, found {actual}"] if expected != actual else []
    wrong += chain.from_iterable(_ranks(counters, truth, truth.registered[name], exact) for name in sorted(exact))
    wrong += [f"{name}: an entry waits for it in vain" for name in truth.waiting_in_vain() if whole]
    wrong += truth.misplaced(is_spoiled, fails_for) if fails_for is not None else ()
    names = {name for name in NAMES - truth.entries.keys() if not any(is_spoiled(level) for level in DECLARED[name])}
    return wrong + [f"{name}: not registered, but it has items" for name in sorted(truth.types() & names)]


def _counted(backend: Backend, name: str) -> bool:
    """Return True if an aggregator or a backfill has written a group: a transaction may, before the name is known."""
    items = (item for item in backend.items() if item.get("_type") == {"S": name})
    return any(key == BASELINE or key.startswith(WATERMARK_PREFIX) for item in items for key in item)


def _refusals(counters: Counters, own: Declaration, truth: Truth, *, whole: bool) -> Iterator[str]:
    """Yield what is wrong with how a declaration is registered, or with what its readers are told."""
    registered, name = truth.registered, own.name
    below = [level for level in with_below(own) if level.name in registered]
    changed = [level for level in below if signature(level) != signature(registered[level.name])]
    if name in registered:
        if whole and not changed and truth.entries[name].state != "complete":
            yield f"{name}: not complete after its backfill"
    elif whole and not changed:
        yield f"{name}: not registered, although nothing contradicts it"
    expected = UncountedError if name not in registered or own in changed else None
    readable = [group for group in truth.of(own) if not isinstance(own, Window) or _is_readable(own, group, truth.now)]
    for group in readable[:1]:
        refusal = None
        try:
            _read_group(counters, own, group)
        except InvalidArgumentError as error:
            refusal = type(error)
        if refusal is not expected:
            yield f"{name}: its readers met {refusal}, expected {expected}"


def _read(
    truth: Truth,
    backend: Backend,
    counters: Counters,
    declaration: Declaration,
    expected: Iterable[Group],
    *,
    is_complete: bool,
) -> Groups:
    """Return groups as readers see them: all that are wanted, or are there."""
    groups = {*expected}
    content: dict[Group, Parts] = {}
    for item in backend.items():
        if item.get("_type", {}).get("S") != declaration.name:
            continue
        for entry in held_groups(declaration, item) if isinstance(declaration, Aggregate) else ():
            assert not entry.declaration.pages or entry.group not in content, f"{entry.place} lies in two pages"
            groups.add(entry.group)
            content.setdefault(entry.group, {})["_score"] = Decimal(item.get("_score", {"N": "0"})["N"])
        if isinstance(declaration, Window):
            slots = {name: Decimal(value["N"]) for name, value in item.items() if name != "ttl" and "N" in value}
            content[_bucket_of(declaration, item)] = slots
    result: Groups = {}
    groups |= {group for group in content if not truth.is_closed(declaration, group)}
    for group in groups:
        if isinstance(declaration, Window) and not _is_readable(declaration, group, truth.now):
            result[group] = nonzero(content.get(group, {}))
            continue
        complete, parts = _read_group(counters, declaration, group)
        if isinstance(declaration, Window):
            parts = content.get(group, {}) | parts
        assert complete == is_complete, f"{declaration.name} is said to be complete={complete}"
        if isinstance(declaration, Aggregate):
            parts |= _apart(declaration, content.get(group, {}), parts)
        if numbers := nonzero(parts):
            result[group] = numbers
    return result


def _ranks(counters: Counters, truth: Truth, leaf: Any, exact: Collection[str]) -> Iterator[str]:
    """Yield what is wrong with what is read of boards: of the scores at both ends and between, in either order."""
    if kind_of(leaf) != "ranks":
        return
    [row] = (row for row in FAMILIES[leaf.name] if signature(row[-1]) == signature(leaf))
    digits = [level for level in row if leaf.name in (level.name, level.name.rpartition("-")[0])]
    if any(level.name not in exact or signature(truth.registered[level.name]) != signature(level) for level in digits):
        return
    # A record may wait for some digits alone, or its removal may have come without it.
    counted = [_members(truth, leaf, above) for above in range(len(digits))]
    if min(counted[0].values(), default=0) < 0 or counted != [_members(truth, level) for level in reversed(digits)]:
        return
    for board, counts in scores(leaf, truth.of(leaf)).items():
        ordered = sorted(score for score, count in counts.items() for _ in range(count))
        values = dict(zip(leaf._pk_template.fields, board, strict=True))
        for order, number in product(ORDERS, {1, len(ordered) // 2 + 1, len(ordered)} if ordered else ()):
            score = (ordered[::-1] if order == ORDERS[0] else ordered)[number - 1]
            before = sum(other > score if order == ORDERS[0] else other < score for other in ordered)
            expected: Any = [(before + 1, len(ordered), score, counts[score])] * 2
            expected += [(sum(other <= score for other in ordered), len(ordered))]
            expected += [(sum(other >= score for other in ordered), len(ordered))]
            question = Question(now=truth.now, declared=leaf, values=values, consistent=True)
            asked: list[Any] = [{"score": score, "order": order}, {"rank": number, "order": order}]
            asked += [{"low": ordered[0], "high": score}, {"low": score, "high": ordered[-1]}]
            answers = [read_ranks(counters._table, replace(question, **changes)) for changes in asked]
            read = [astuple(answer)[: len(numbers)] for answer, numbers in zip(answers, expected, strict=True)]
            if read != expected:
                yield f"{leaf.name} {board} {order} {number}: expected {expected}, read {read}"


def _members(truth: Truth, level: Any, above: int = 0) -> dict[tuple[Group, int], int]:
    """Return how many members a board has by the digits that are counted, or those above."""
    members, width = Counter[tuple[Group, int]](), len(level._pk_template.fields)
    for group, parts in truth.of(level).items():
        members[group[:width], int("".join(group[width:])) // 100**above] += int(parts["members"])
    return {digits: number for digits, number in members.items() if number}


def _is_readable(window: Window, group: Group, now: float) -> bool:
    """Return whether readers are shown all of a bucket."""
    if group[-1].startswith(DAY_BUCKET):
        return False
    return window.retention is None or int(group[-1]) >= now - window.retention.total_seconds()


def _read_group(counters: Counters, declaration: Declaration, group: Group) -> tuple[bool, Parts]:
    values = dict(zip(declaration.fields, group, strict=False))
    if isinstance(declaration, Aggregate):
        read = counters.get(declaration, values, consistent=True)
        return read.complete, _attributes(read.measures)
    start = datetime.fromtimestamp(int(group[-1]), UTC)
    count = counters.window(declaration, values).between(start, start + timedelta(hours=1), consistent=True)
    parts = {"total": Decimal(count.count)}
    if isinstance(declaration.measure, TimeWeighted):
        level = counters.window(declaration, values).integral(start, start + timedelta(hours=1), consistent=True)
        assert level.complete == count.complete
        held_for = level.opening * 3600 + (level.closing - level.opening) * 3600 - level.value
        parts["total.t"] = Decimal(held_for)
    return count.complete, parts


def _apart(aggregate: Aggregate, content: Parts, parts: Parts) -> Parts:
    """Return a score that is not its measure's."""
    score, measure = content.get("_score", Decimal(0)), aggregate.ranking.measure if aggregate.ranking else ""
    return {"_score": score} if measure and score != parts.get(measure, 0) else {}


def _bucket_of(window: Window, item: Image) -> Group:
    fields = window._pk_template.parse(item["pk"]["S"])
    *_, tier, bucket = item["sk"]["S"].split("#")
    is_day = tier == "D"
    moment = datetime.fromisoformat(f"{bucket}{'T00' * is_day}:00+00:00").timestamp()
    return (*(fields[name] for name in window.fields), f"{DAY_BUCKET * is_day}{int(moment)}")


def _attributes(measures: Mapping[str, Any]) -> Parts:
    parts: Parts = {}
    for name, value in measures.items():
        if isinstance(value, Mapping):
            parts |= {f"{name}.{key}": Decimal(count) for key, count in value.items()}
        else:
            parts[name] = Decimal(value)
    return parts


def _text(parts: Parts | None) -> str:
    return ", ".join(f"{name} {part}" for name, part in sorted((parts or {}).items())) or "nothing"
