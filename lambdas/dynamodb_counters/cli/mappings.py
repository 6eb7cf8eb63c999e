"""The event source mappings by which Lambda reads a table's stream, and what is wrong with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dynamodb_counters.cli.facts import Facts, tried
from dynamodb_counters.cli.session import Session

_ALIVE = ("Creating", "Enabling", "Enabled", "Updating")
"""https://docs.aws.amazon.com/lambda/latest/api/API_EventSourceMappingConfiguration.html"""


def mapping_facts(session: Session, stream: str | None) -> Facts:
    """The mappings of the functions that count the table, those of a source table's stream among them."""
    if stream is None or session.endpoint_url is not None:  # An emulator has no Lambda.
        return {"mappings": [], "mapping_problems": []}
    found, problem = tried(lambda: list(_mappings(session.client("lambda"), stream, session.table.name)))
    if found is None:
        return {"mappings": [], "mapping_problems": [problem]}
    return {
        "mappings": [
            {
                "id": one["UUID"],
                "function": one["FunctionArn"],
                "stream": one["EventSourceArn"],
                "state": one["State"],
                "starts": one.get("StartingPosition"),
            }
            for one in found
        ],
        "mapping_problems": list(_problems(found, stream)),
    }


def _mappings(lambdas: Any, stream: str, table: str) -> Iterator[Mapping[str, Any]]:
    # Without the version or alias.
    readers = {":".join(one["FunctionArn"].split(":")[:7]) for one in _listed(lambdas, EventSourceArn=stream)}
    for function in sorted(readers):
        if _counts(lambdas, function, table):
            yield from _listed(lambdas, FunctionName=function)


def _problems(mappings: Iterable[Mapping[str, Any]], stream: str) -> Iterator[str]:
    readers = Counter({stream: 0})
    for one in mappings:
        readers[one["EventSourceArn"]] += 1
        if one.get("StartingPosition") != "TRIM_HORIZON":
            yield (
                f"mapping {one['UUID']} starts at {one.get('StartingPosition')}: records from before are not counted; "
                "create it with TRIM_HORIZON"
            )
        if one["State"] not in _ALIVE:
            yield f"mapping {one['UUID']} is {one['State'].lower()}: the stream forgets records after 24 hours"
    for arn, times in readers.items():
        if not times:
            yield f"no mapping of a function that counts this table reads {arn}"
        if times > 1:
            yield (
                f"{times} mappings read {arn}: records that one delivers before the other are lost; delete all but the "
                "construct's"
            )


def _counts(lambdas: Any, function: str, table: str) -> bool:
    variables = lambdas.get_function_configuration(FunctionName=function).get("Environment", {}).get("Variables", {})
    counted, asked = (name.rpartition("/")[2] for name in (variables.get("TABLE_NAME", ""), table))
    return "AGGREGATOR" in variables and counted == asked


def _listed(lambdas: Any, **of: str) -> Iterator[Mapping[str, Any]]:
    for page in lambdas.get_paginator("list_event_source_mappings").paginate(**of):
        yield from page["EventSourceMappings"]
