"""Seeded requests: sensible ones, and the same with something in them that should break whoever reads it."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

from counters_lambda.http_api.resources import PATHS
from dynamodb_counters._reads.question import Position, fields_of, options_of, resources_of
from simulation.hostile.costly import MAX_BYTES
from simulation.hostile.declarations import FIELDS, SERVED

_TIMES: Final = (
    *("2026-09-21T14:13:20Z", "2026-09-21T14:13:20+00:00", "2026-09-20T00:00:00-11:00", "2026-19-39T29:59:59Z"),
    *("2026-02-30T00:00:00Z", "2026-09-21T14:13:20", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"),
    *("2030-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "24:00", ""),
)
_TEXTS: Final = (
    *("", "/", "c0", "c1", "#", "%", "%~", "%00", "\x00", "\u2028", "\ud800", "\U0010ffff"),
    *("é" * 700, "x" * 1100, "x" * 2100, "\x01" * 8200, "x" * 9000),
    *("STATISTICS", "../..", "{url}", "' OR 1=1", "=1+1", "$(id)", "[" * 50, '"', "\\", "1e5", "0" * 40, "null"),
)
_NUMBERS: Final = (
    *("0", "-0", "1", "1.5", "-7", "1e125", "9.9e125", "1e126", "1e-130", "1e-131", "1E+400", "1E+999999999"),
    *("1E99999999999999999999", "0E+999999999", "9" * 38, "9" * 39, "1" + "0" * 50, "9" * 4300, "9" * 4301),
    *("0." + "3" * 38, "0." + "3" * 500, "NaN", "-Infinity", "1790000000", "1790000000000", "1e400", "1_000", "01"),
)
_NAMES: Final = (
    *("", "pk", "sk", "ttl", "_type", "_x", "bytes", "more"),
    *("n" * 300, "n" * 65_535, "n" * 65_536, "\ud800", "a.b"),
)
_LENGTHS: Final = (
    *("1m", "15m", "16m", "1h", "24h", "7d", "30d", "366d", "367d", "0m", "9999999d", "1s", "", "-1h", "٣m"),
)


class Stranger:
    """Draws requests from a seed."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)

    def post(self) -> dict[str, Any]:
        """Return a request that posts events; one in ten a CloudEvent."""
        if self._rng.random() < 0.1:
            context = {"specversion": "1.0", "id": self._text(), "source": "/", "type": "view"}
            envelope = f'{json.dumps(context)[:-1]},"data":{self._event()}}}'
            headers = {"content-type": "application/cloudevents+json"}
            return self._spoiled(new_request("POST", "/events", "", envelope, headers))
        return self._spoiled(new_request("POST", "/events", "", self._body(), self._headers()))

    def get(self) -> dict[str, Any]:
        """Return a request for counts or events; one in eight posts a batch."""
        if self._rng.random() < 0.125:
            return self._spoiled(new_request("POST", "/v1/batch", "", self._batch(), self._headers()))
        path, needed, others = self._rng.choice(_RESOURCES)
        parameters = {name: self._parameter(name) for name in needed if self._rng.random() < 0.97}
        parameters |= {name: self._parameter(name) for name in others if self._rng.random() < 0.3}
        query = urlencode(parameters, errors="replace")
        drawn = self._rng.random()
        if drawn < 0.05:
            query = self._broken(query)
        elif drawn < 0.07:
            path = f"/v1/{quote(self._text(), safe='', errors='replace')[:200]}"
        return self._spoiled(new_request(self._rng.choice(["GET"] * 9 + ["PUT"]), path, query))

    def _body(self) -> str:
        """Return the text of a body or a message."""
        drawn = self._rng.random()
        if drawn < 0.04:
            return self._deep(self._rng.choice([1, 20, 33, 34, 35, 100, 976, 988, 5000, 100_000]))
        if drawn < 0.06:
            return self._text() * self._rng.choice([0, 1, 20])
        events = [self._event() for _ in range(self._rng.choice([1, 1, 1, 2, 5, 20]))]
        if drawn < 0.07:
            events *= self._rng.choice([1, 25, 600])
        text = f"[{','.join(events)}]" if len(events) > 1 or drawn < 0.5 else events[0]
        return (self._broken(text) if self._rng.random() < 0.05 else text)[:MAX_BYTES]

    def _event(self) -> str:
        """Return an event as JSON: mostly a good one of which one or two attributes are not."""
        attributes = {
            "customer": '"c0"',
            "url": json.dumps(f"/{self._rng.randrange(1000)}"),
            "time": '"2026-09-21T14:13:20Z"',
            "clientId": json.dumps(f"c{self._rng.randrange(10**6)}"),
            "bytes": str(self._rng.randrange(1000)),
            "tags": '["a","b"]',
        }
        for _ in range(self._rng.choice([0, 0, 1, 1, 2, 6])):
            name = self._rng.choice([*attributes, *_NAMES]) if self._rng.random() < 0.8 else self._text()
            attributes[name] = self._json()
        for _ in range(self._rng.choice([0, 0, 0, 1])):
            attributes.pop(self._rng.choice(sorted(attributes)), None)
        members = [f"{json.dumps(name)}:{value}" for name, value in attributes.items()]
        if self._rng.random() < 0.01:
            members.append(self._rng.choice(members or ['"a":1']))
        return f"{{{','.join(members)}}}" if self._rng.random() < 0.97 else self._json()

    def _json(self, levels: int = 3) -> str:  # noqa: PLR0911
        drawn = self._rng.random()
        if drawn < 0.3:
            return json.dumps(self._text())
        if drawn < 0.55:
            return self._rng.choice(_NUMBERS)
        if drawn < 0.7:
            return json.dumps(self._rng.choice(_TIMES))
        if drawn < 0.8 or not levels:
            return self._rng.choice(["null", "true", "false", "[]", "{}", '""', "undefined"])
        if drawn < 0.84:
            return self._deep(self._rng.choice([2, 30, 31, 32, 33, 60, 100, 500, 978]))
        parts = [self._json(levels - 1) for _ in range(self._rng.choice([1, 2, 3, 60]))]
        if drawn < 0.92:
            return f"[{','.join(parts)}]"
        return "{" + ",".join(f"{json.dumps(self._rng.choice([*_NAMES, *_TEXTS]))}:{part}" for part in parts) + "}"

    def _deep(self, levels: int) -> str:
        opening, closing = self._rng.choice([("[", "]"), ('{"a":', "}"), ('[{"[":', "}]")])
        return opening * levels + self._rng.choice(["1", "", '"]"', "[]"]) + closing * levels

    def _text(self) -> str:
        drawn = self._rng.random()
        if drawn < 0.6:
            return self._rng.choice(_TEXTS)
        return "".join(chr(self._rng.choice([self._rng.randrange(128), self._rng.randrange(0x2FFF)])) for _ in range(6))

    def _broken(self, text: str) -> str:
        """Return a text with something cut out, put in or repeated."""
        place = self._rng.randrange(len(text) + 1)
        return (
            text[:place]
            + self._rng.choice(["", "[", '"', "\\", "\x00", "}", ",", "\ufeff", "%", "&", text[:50]])
            + (text[place + self._rng.choice([0, 1, 5]) :])
        )

    def _parameter(self, name: str) -> str:
        sensible: Mapping[str, Callable[[], str]] = {
            "customer": lambda: self._rng.choice(["c0", "c0", "c0", "c1"]),
            "url": lambda: f"/{self._rng.randrange(300)}",
            "clientId": lambda: f"client-{self._rng.randrange(300)}",
            "tags[]": lambda: "a",
            "time:day": lambda: "2026-09-21",
            "last": lambda: self._rng.choice(_LENGTHS),
            "step": lambda: self._rng.choice(_LENGTHS),
            "rolling": lambda: self._rng.choice(_LENGTHS),
            "p": lambda: self._rng.choice(["0.5", "0.5,0.95,1", "2", "0.5,"]),
            "order": lambda: self._rng.choice(["largest", "smallest", "first"]),
            "limit": lambda: str(self._rng.choice([1, 10, 100, 1000, 1001])),
            **dict.fromkeys(("score", "low", "high"), lambda: self._rng.choice(["0", "500", "1000", "1e3", "-1"])),
            "rank": lambda: self._rng.choice(["1", "7", "0"]),
            "next": self._token,
            "consistent": lambda: self._rng.choice(["true", "false"]),
            "start": lambda: self._rng.choice(["2026-09-20T00:00:00Z", "1970-01-01T00:00:00Z"]),
            "end": lambda: self._rng.choice(["2026-09-22T00:00:00Z", "9998-12-31T00:00:00Z"]),
            "as_of": lambda: "2026-09-21T14:13:20Z",
            "tz": lambda: self._rng.choice(["UTC", "Asia/Kathmandu"]),
            "anchor": lambda: self._rng.choice(["1", "31"]),
            "time": lambda: "2026-09-21T14:13:20+00:00",
        }
        if self._rng.random() < 0.85:
            return sensible.get(name, self._text)()
        return self._rng.choice([self._text(), self._rng.choice(_TIMES), self._rng.choice(_NUMBERS)])

    def _token(self) -> str:
        drawn = self._rng.random()
        if drawn < 0.5:
            key = self._rng.choice(["U#", "U#/1", "U#/299", "VIEW#2026", "T#", "zzz", "S", "D#2026-09-21", *_TEXTS])
            seconds = self._rng.choice([0, 0, 0, 1_790_000_000, -62_135_596_800, 10**12, -1])
            return _token(json.dumps(Position(seconds, self._text(), key)))
        if drawn < 0.8:
            return _token(
                self._rng.choice(["[" * 5000, "[[[[1]]]]", "9" * 5000, "[1,2]", '{"a":1}', '[true,"",""]', "\ufeff[]"])
            )
        return self._text()

    def _batch(self) -> str:
        entries = []
        for _ in range(self._rng.choice([1, 2, 10, 100, 101])):
            declared = self._rng.choice(SERVED)
            values = {name: json.dumps(self._parameter(name)) for name in declared.fields}
            if self._rng.random() < 0.05:
                values[self._rng.choice(FIELDS)] = self._json()
            inner = ",".join(f"{json.dumps(name)}:{value}" for name, value in values.items())
            entries.append(f'{{"aggregate":{json.dumps(declared.name)},"values":{{{inner}}}}}')
        text = f'{{"groups":[{",".join(entries)}]}}'
        return text if self._rng.random() < 0.8 else self._rng.choice([self._broken(text), self._body()])

    def _headers(self) -> dict[str, Any]:
        return self._rng.choice(
            [{"content-type": "application/json"}] * 12
            + [{"Content-Type": "text/plain;charset=UTF-8"}, {}, {"content-type": "a/b" * 300}]
        )

    def _spoiled(self, request: dict[str, Any]) -> dict[str, Any]:
        """Give a request another's claim or, now and then, a body that is no text, odd headers, or no claim."""
        jwt = request["requestContext"]["authorizer"]["jwt"]
        jwt["claims"]["sub"] = self._rng.choice(["c0", "c0", "c0", "c0", "c1"])
        if self._rng.random() < 0.1 and "body" in request:
            body = base64.b64encode(request["body"].encode(errors="replace")).decode()
            request |= {"body": body, "isBase64Encoded": True}
        if self._rng.random() < 0.96:
            return request
        odd = self._rng.choice([None, "", 7, [], {}, True, "é\ud800", {"a": None}, ["a"]])
        place = self._rng.choice(["body", "headers", "authorizer", "claims", "claim"])
        if place == "body":
            request |= {"body": self._rng.choice(["!!!", "", "/w=="]), "isBase64Encoded": True}
        elif place == "headers":
            request["headers"] = {self._text(): self._text()}
        elif place == "authorizer":
            request["requestContext"].pop("authorizer")
        else:
            jwt["claims"] = odd if place == "claims" else {"sub": odd}
        return request


def new_request(
    method: str, path: str, query: str = "", body: str | None = None, headers: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return a request of a customer as API Gateway delivers it."""
    authorizer = {"jwt": {"claims": {"sub": "c0"}, "scopes": None}}
    context = {"http": {"method": method, "path": path}, "stage": "$default", "authorizer": authorizer}
    request: dict[str, Any] = {"version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": query}
    request |= {"headers": {**(headers or {})}, "requestContext": context, "isBase64Encoded": False}
    return request if body is None else {**request, "body": body}


def _token(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode(errors="replace")).decode().rstrip("=")


def _resources() -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """Path, required and other parameters of everything that is served."""
    resources: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = [("/openapi.json", (), ()), ("/", (), ())]
    for declared in SERVED:
        for resource in resources_of(declared):
            required, fields = fields_of(declared, resource)
            others = (*(name for name in fields or () if name not in required), *options_of(declared, resource))
            resources.append((PATHS[resource].format(declared.name), required, others))
    return resources


_RESOURCES: Final = _resources()
