"""One way to draw: shapes, and pictures that are readable at a phone's width, in light and in dark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from typing import Final

WIDTH: Final = 500
LEFT: Final = 10
RIGHT: Final = WIDTH - LEFT
INNER: Final = RIGHT - LEFT
_SIZE: Final = 16
"""The smallest text: 11 pixels in the column of a phone that is 390 pixels wide."""

# Fill and stroke, in light and in dark.
_KINDS: Final = {
    "plain": ("#f6f8fa", "#57606a", "#161b22", "#8b949e"),
    "table": ("#ddf4ff", "#0969da", "#0c2d6b", "#58a6ff"),
    "good": ("#dafbe1", "#1a7f37", "#0f2d1a", "#3fb950"),
    "bad": ("#ffebe9", "#cf222e", "#4c1519", "#ff7b72"),
    "side": ("#fff8c5", "#9a6700", "#3b2300", "#d29922"),
}
_INKS: Final = {"ink": ("#1f2328", "#e6edf3"), "faint": ("#57606a", "#9da7b3"), "rule": ("#d0d7de", "#3d444d")}


def _variables(dark: int) -> str:
    inks = "".join(f"--{name}:{both[dark]};" for name, both in _INKS.items())
    return inks + "".join(
        f"--{name}:{four[2 * dark]};--{name}-line:{four[2 * dark + 1]};" for name, four in _KINDS.items()
    )


_STYLE: Final = (
    f":root{{{_variables(0)}}}@media (prefers-color-scheme:dark){{:root{{{_variables(1)}}}}}"
    "text{fill:var(--ink)}.b{font-weight:600}.faint{fill:var(--faint)}.none{fill:none;stroke:var(--rule)}"
    ".rule{stroke:var(--rule);stroke-dasharray:4 4}.line{stroke:var(--faint);stroke-width:1.5;fill:none}"
    + "".join(
        f".{name}{{fill:var(--{name});stroke:var(--{name}-line)}}text.{name}{{fill:var(--{name}-line);stroke:none}}"
        for name in _KINDS
    )
)
_MINUS: Final = "\N{MINUS SIGN} "
_ARROW: Final = (
    '<defs><marker id="a" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0 10 5 0 10z" style="fill:var(--faint)"/></marker></defs>'
)


def text(left: float, top: float, words: str, looks: str = "", *, anchor: str = "start") -> str:
    """One line of text on a baseline; `looks` are `b`, `faint` or a kind of box, whose line colors it."""
    shown = escape(words).replace("- ", _MINUS)
    return f'<text x="{left:g}" y="{top:g}" class="{looks}" text-anchor="{anchor}">{shown}</text>'


def box(
    left: float, top: float, width: float, height: float, kind: str, *lines: str, bold: bool = True, corner: int = 6
) -> str:
    """Draw a box with lines of text in its middle; the first one is bold if others follow, unless `bold` is False."""
    area = f'x="{left:.4g}" y="{top:g}" width="{width:.4g}" height="{height:g}" rx="{corner}"'
    first = top + height / 2 + 6 - 11 * (len(lines) - 1)
    words = [
        text(
            left + width / 2, first + 22 * index, line, "b" if bold and not index and lines[1:] else "", anchor="middle"
        )
        for index, line in enumerate(lines)
    ]
    return "\n".join([f'<rect {area} class="{kind}"/>', *words])


def rule(left: float, top: float, right: float, bottom: float) -> str:
    """Draw a dashed line, faint."""
    return f'<path class="rule" d="M{left:g} {top:g}L{right:g} {bottom:g}"/>'


def arrow(*points: tuple[float, float]) -> str:
    """Draw a line with a head at its last point."""
    path = "L".join(f"{left:g} {top:g}" for left, top in points)
    return f'<path class="line" marker-end="url(#a)" d="M{path}"/>'


def picture(label: str, height: int, shapes: Iterable[str]) -> str:
    """Return an SVG whose label says what it shows."""
    body = "\n".join(shapes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'font-family="system-ui, sans-serif" font-size="{_SIZE}" role="img" aria-label="{escape(label)}">\n'
        f"<style>{_STYLE}</style>\n{_ARROW}\n{body}\n</svg>\n"
    )


def write(made: Mapping[Path, str]) -> None:
    """Write pictures and pages."""
    for path, text in made.items():
        path.write_text(text, encoding="utf-8")
