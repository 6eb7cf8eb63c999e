"""Templates: which are refused, and which two could give the same key."""

from __future__ import annotations

from itertools import combinations_with_replacement, product

import pytest

from dynamodb_counters._items.key_templates import KeyTemplate
from dynamodb_counters.errors import InvalidArgumentError

_WRONG: list[object] = [
    *("", None, 5, b"URL#{url}"),
    *("URL#{url", "URL#url}", "URL#{}", "URL#{0}", "URL#{url!r}", "URL#{url:>8}"),
    *("URL#{u rl}", "URL#{url[0]}", "URL#{.url}", "URL#{url.}", "URL#{#}"),
    *("{a}{b}", "{a}x", "{a}x#{b}", "{a} #{b}", "A#{a}#B#{a}"),
    *("100%#{a}", "A\n#{a}", "A\0#{a}", "A\x7f#{a}", "A\ud800#{a}"),
    *("x" * 1024, "x" * 990 + "#{a}", "é" * 500),
]


@pytest.mark.parametrize("text", _WRONG)
def test_a_wrong_template_is_refused_by_name_and_value(text: object) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        KeyTemplate(text, 1024, "sk")  # type: ignore[arg-type]

    assert refused.value.argument == "sk"
    assert refused.value.value == text
    assert refused.value.expected
    assert str(refused.value).startswith(f"invalid sk={text!r:.120}")
    assert str(refused.value).endswith(refused.value.expected)


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("STATISTICS", ()),
        ("#", ()),
        ("{a}", ("a",)),
        ("A{a}", ("a",)),
        ("#{a}#", ("a",)),
        ("A#{a}#{b}#C", ("a", "b")),
        ("é#{client-id}#{_x}", ("client-id", "_x")),
        ("{{literal}}#{a}", ("a",)),
    ],
)
def test_a_right_template_knows_its_fields(text: str, fields: tuple[str, ...]) -> None:
    template = KeyTemplate(text, 1024)
    values = {name: f"value {name}" for name in fields}

    assert template.fields == fields
    assert template.parse(template.render(values)) == values


def test_doubled_braces_are_literal_text() -> None:
    assert KeyTemplate("{{x}}#{a}", 1024).render({"a": "1"}) == "{x}#1"


_VALUES = ["".join(letters) for length in range(4) for letters in product("ab", repeat=length)]


def _keys(template: KeyTemplate) -> frozenset[str]:
    return frozenset(
        template.render(dict(zip(template.fields, values, strict=True)))
        for values in product(_VALUES, repeat=len(template.fields))
    )


def _all_templates() -> list[KeyTemplate]:
    segments = [(prefix, opened) for prefix in ("", "a", "ab", "b") for opened in (False, True)]
    texts = {
        "#".join(prefix + (f"{{f{n}}}" if opened else "") for n, (prefix, opened) in enumerate(chosen))
        for length in (1, 2)
        for chosen in product(segments, repeat=length)
    }
    return [KeyTemplate(text, 1024) for text in sorted(texts) if text]


def test_overlap_is_what_a_search_over_all_short_values_finds() -> None:
    keys = {template: _keys(template) for template in _all_templates()}

    for one, two in combinations_with_replacement(keys, 2):
        expected = not keys[one].isdisjoint(keys[two])
        assert one.overlaps(two) is expected, (one.text, two.text)
        assert two.overlaps(one) is expected, (one.text, two.text)
