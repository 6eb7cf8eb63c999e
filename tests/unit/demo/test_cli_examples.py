"""The pages show what the commands print, of each command something."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from demo.cli_examples.page import PAGE, PAGES, filled, workplace
from dynamodb_counters.cli.main import counters


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[str]:
    names = (*path, str(command.name))
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            yield from leaves(inner, names)
    else:
        yield " ".join(names)


@pytest.mark.night
@pytest.mark.snapshot
def test_the_pages_show_what_the_commands_print() -> None:
    with workplace() as blog:
        for page in PAGES:
            text = page.read_text(encoding="utf-8")
            assert filled(text, blog) == text, f"{page.name}: make cli-examples"


@pytest.mark.parametrize("name", [name for command in counters.commands.values() for name in leaves(command)])
def test_every_command_has_an_example_and_a_place_in_the_index(name: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    shown = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert f"\n$ counters {name} " in shown or f"\n$ counters {name}\n" in shown
    assert f"| [`{name.split(maxsplit=1)[0]}`](#" in text
