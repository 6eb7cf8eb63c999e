"""Pictures of commands at a terminal: real runs, drawn by a real browser. Look at them before committing."""

from __future__ import annotations

import io
import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from rich.console import Console
from rich.live import Live
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from demo.cli_examples.blog import seeded
from demo.cli_examples.orders import Orders
from demo.cli_examples.page import PAGE, WIDTH, World, session
from dynamodb_counters.cli.main import main
from dynamodb_counters.cli.show.console import SafeConsole

FIGURES: Final = PAGE.parent / "figures"
QUEUE: Final = "https://sqs.us-east-1.amazonaws.com/123456789012/blog-dead-letters"

PICTURES: Final = {
    "cli-describe": f"counters describe --peek --queue {QUEUE}",
    "cli-series": "counters series site --last 24h",
    "cli-explain": "counters explain phones time:day=2026-11-20 url=/about --limit 9",
    "cli-backfill": "counters backfill --table orders",
    "cli-verify": "counters verify --table orders",
}
_CONTROL: Final = re.compile(r"\x1b\[[?\d;]*[A-Za-z]|\r")

_COLORS: Final = [(224, 120, 122), (143, 191, 135), (216, 179, 108), (127, 166, 217), (185, 154, 214), (108, 182, 192)]
_BACK, _FRONT, _GRAY = (27, 31, 39), (213, 218, 227), (119, 128, 143)
_DARK: Final = TerminalTheme(_BACK, _FRONT, [_BACK, *_COLORS, _FRONT], [_GRAY, *_COLORS, (255, 255, 255)])

_HTML: Final = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; background: transparent; display: inline-block; }}
main {{ background: {background}; border-radius: 8px; padding: 14px 20px 18px; }}
i {{ display: inline-block; width: 11px; height: 11px; border-radius: 50%; margin: 0 7px 12px 0; background: #4a5160; }}
pre {{ margin: 0; color: {foreground}; font: 14px/16px "DejaVu Sans Mono", monospace; }}
</style><main><i></i><i></i><i></i><pre style="width: {{width}}ch">{code}</pre></main>"""


def take_pictures(directory: Path = FIGURES, width: int = WIDTH) -> None:
    """Run each command on a table of its own and draw what its terminal shows."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only pictures need a browser

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(device_scale_factor=2, viewport={"width": 1200, "height": 900})
        for name, line in PICTURES.items():
            page.set_content(screen(line, width))
            page.locator("main").screenshot(path=directory / f"{name}.png", omit_background=True)
        browser.close()


def screen(line: str, width: int) -> str:
    """Text that a terminal of some width shows when a command has run; as HTML."""
    if " --table orders" in line:
        return _shown(line, Orders(), width)
    with seeded() as blog:
        return _shown(line, blog, width)


def _shown(line: str, world: World, width: int) -> str:
    console = SafeConsole(
        file=io.StringIO(),
        record=True,
        width=width,
        height=60,
        force_terminal=True,
        color_system="truecolor",
        _environ={},
    )
    shown = session(world, lambda: console)
    prompt = Text.assemble(("$ ", "green"), _short(line))
    with _one_frame(console):
        main(shlex.split(line)[1:], shown)
    return _drawn(console, prompt, width)


@contextmanager
def _one_frame(console: Console) -> Iterator[None]:
    """Have a recording console forget what a live display draws over."""
    refresh = Live.refresh

    def refreshed(live: Live) -> None:
        console.export_text(clear=True)
        refresh(live)

    with patch.object(Live, "refresh", refreshed):
        yield


def _short(line: str) -> str:
    return line.replace(QUEUE, QUEUE.rsplit("/", 1)[-1])


def _drawn(console: Console, prompt: Text, width: int) -> str:
    code: Any = console.export_html(theme=_DARK, code_format=_HTML, inline_styles=True, clear=True)
    above = Console(record=True, file=io.StringIO(), width=width, color_system="truecolor", force_terminal=True)
    above.print(prompt)
    first: str = above.export_html(theme=_DARK, code_format="{code}", inline_styles=True)
    drawn: str = code.replace("{width}", str(width)).replace('ch">', f'ch">{first}\n', 1)
    # rich takes controls for text that stands before text.
    return _CONTROL.sub("", drawn)
