"""Chunks: whatever DynamoDB can hold comes back as it was, also to a reader that knows the format only."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dynamodb_counters._items.chunks import MAX_NUMBER, Row, Sign, chunk_bucket, chunk_key, decode_chunk, encode_chunk
from dynamodb_counters.errors import MalformedImageError

_HOSTILE = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    st.text(alphabet="\n\r\0\x1f\x7f\"'\\,[]{}:\u2028\u0301\U0001f600+-0", max_size=8),
    st.sampled_from(["", "\n", "\n\n", "null", "true", '{"S":"x"}', "a" * 3000]),
)
_NUMBER = st.one_of(
    st.integers(-(10**38) + 1, 10**38 - 1).map(str),
    st.sampled_from(["0", "-0", "1E+2", "1.50", "9" * 38, "-" + "1" * 38, "9." + "9" * 37 + "E+125"]),
    st.decimals(allow_nan=False, allow_infinity=False, places=9).map(str),
)
_SCALAR = st.one_of(
    st.fixed_dictionaries({"S": _HOSTILE}),
    st.fixed_dictionaries({"N": _NUMBER}),
    st.fixed_dictionaries({"B": st.binary(max_size=20)}),
    st.sampled_from([{"BOOL": True}, {"BOOL": False}, {"NULL": True}]),
    st.fixed_dictionaries({"SS": st.sets(_HOSTILE, min_size=1, max_size=4).map(sorted)}),
    st.fixed_dictionaries({"NS": st.sets(_NUMBER, min_size=1, max_size=4).map(sorted)}),
    st.fixed_dictionaries({"BS": st.lists(st.binary(max_size=5), min_size=1, max_size=4, unique=True)}),
)
_VALUE: st.SearchStrategy[dict[str, Any]] = st.recursive(
    _SCALAR,
    lambda inner: st.one_of(
        st.fixed_dictionaries({"L": st.lists(inner, max_size=3)}),
        st.fixed_dictionaries({"M": st.dictionaries(_HOSTILE, inner, max_size=3)}),
    ),
    max_leaves=6,
)
_PAGE = Path(__file__).parents[3] / "docs" / "writing-events.md"
[_READER] = [block for block in re.findall(r"```python\n(.*?)```", _PAGE.read_text(), re.DOTALL) if "zlib" in block]

_SIGNS = st.sampled_from("+++-0")
_NAMES = st.lists(_HOSTILE.filter(bool), min_size=1, max_size=5, unique=True)


@st.composite
def _rows(draw: st.DrawFn) -> list[Row]:
    """Rows whose columns are of one kind or mixed, present in all rows or in some."""
    kinds = {name: draw(st.sampled_from(["S", "N", "any", "sparse"])) for name in draw(_NAMES)}
    strategies: dict[str, Any] = {"S": {"S": _HOSTILE}, "N": {"N": _NUMBER}}
    rows = []
    for sign in draw(st.lists(_SIGNS, min_size=1, max_size=12)):
        values = {}
        for name, kind in kinds.items():
            if kind not in ("any", "sparse"):
                values[name] = draw(st.fixed_dictionaries(strategies[kind]))
            elif kind == "any" or draw(st.booleans()):
                values[name] = draw(_VALUE)
        rows.append(Row(cast("Sign", sign), values))
    return rows


def _read(blob: bytes) -> list[tuple[str, dict[str, Any]]]:
    """Rows by the reader on the docs' page, which knows nothing but the format."""
    page: dict[str, Any] = {}
    exec(_READER, page)
    return list(page["rows"]({"_chunk": {"B": blob}}))


def _as_stream(value: Any) -> Any:
    """Return a typed value as a stream record holds it: binary in base64."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, list):
        return [_as_stream(part) for part in value]
    return {name: _as_stream(part) for name, part in value.items()} if isinstance(value, dict) else value


@given(_rows(), st.text(alphabet="abc-_", min_size=8, max_size=8))
@example([Row("+", {"a": {"S": ""}})], "id")
@example([Row("+", {"a": {"S": "x\x7fy"}}), Row("+", {"a": {"S": "z"}})], "id")
@example([Row("+", {"a": {"S": "1"}}), Row("+", {"a": {"N": "1"}})], "id")
@example([Row("-", {"a": {"N": "1"}}), Row("+", {})], "id")
@example([Row("0", {})], "id")
def test_values_that_dynamodb_can_hold_come_back_as_they_were(rows: list[Row], batch: str) -> None:
    blob = encode_chunk(rows, batch)
    expected = [(row.sign, _as_stream(row.values)) for row in rows]

    chunks = [decode_chunk({"B": blob}), decode_chunk({"B": base64.b64encode(blob).decode()})]

    for chunk in chunks:
        assert (chunk.batch, chunk.rows) == (batch, len(rows))
        assert [(row.sign, row.values) for row in chunk.all_rows()] == expected
    assert _read(blob) == expected


@given(_rows())
def test_rows_that_were_decoded_are_encoded_the_same(rows: list[Row]) -> None:
    blob = encode_chunk(rows, "id")

    assert encode_chunk(decode_chunk({"B": blob}).all_rows(), "id") == blob


def test_accepted_events_of_one_shape_take_no_more_than_their_texts() -> None:
    rows = [Row("+", {"url": {"S": f"/{number}"}, "at": {"N": str(number)}}) for number in range(3)]

    columns = {"url": "/0\x7f/1\x7f/2", "at": ["N", "0\x7f1\x7f2"]}
    assert json.loads(zlib.decompress(encode_chunk(rows, "me"))) == [1, "me", 3, columns]


def _document(**changes: Any) -> dict[str, Any]:
    document = {"version": 1, "batch": "me", "rows": 2, "columns": {"a": "x\x7fy"}, "signs": "+-", **changes}
    return {"B": zlib.compress(json.dumps([*document.values()]).encode())}


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"S": "text"},
        *({"B": content} for content in (b"no zlib", "no base64, either", None)),
        *({"B": zlib.compress(content)} for content in (b"no JSON", b"\xff", b"[1, 2]")),
        _document(version=2),
        _document(batch=None),
        _document(rows=3),
        _document(rows=-1, columns={}),
        _document(columns=None),
        *(_document(columns={"a": column}) for column in ("xy", ["S", "x"], ["S", [1, 2]], ["", ["x", "y"]])),
        *(_document(signs=signs) for signs in (7, "+", "+x")),
    ],
)
def test_values_that_are_no_chunk_are_malformed(value: dict[str, Any]) -> None:
    with pytest.raises(MalformedImageError):
        decode_chunk(value)


@given(st.integers(0, MAX_NUMBER - 1), st.integers(-(10**10), 10**11), st.integers(1, 86_400))
def test_the_keys_of_a_part_are_in_the_order_of_bucket_and_number(number: int, start: int, bucket: int) -> None:
    start = start // bucket * bucket
    pk, sk = chunk_key("view", "7", start, number)

    assert pk == "PACK#view#7"
    last, later = chunk_key("view", "7", start, MAX_NUMBER)[1], chunk_key("view", "7", start + bucket, 0)[1]
    following = [sk, chunk_key("view", "7", start, number + 1)[1], last, later]
    assert following == sorted(following)
    assert {chunk_bucket(key) for key in following[:-1]} == {chunk_bucket(sk)}
