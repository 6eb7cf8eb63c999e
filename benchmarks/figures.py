"""Small SVG plots: bars and lines, without a plotting library."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

_COLORS: Final = ("#0b6e99", "#d9730d", "#4d6461", "#ad1a72", "#6940a5", "#dfab01", "#0f7b6c", "#e03e3e", "#888888")
_STYLE: Final = 'font-family="sans-serif" font-size="12"'
_WIDTH: Final = 720


def bars(title: str, values: Mapping[str, float], unit: str) -> str:
    most = max(values.values(), default=0.0) or 1.0
    rows = []
    for index, (label, value) in enumerate(values.items()):
        y, length = 40 + 24 * index, 380 * value / most
        rows.append(
            f'<text x="230" y="{y + 12}" text-anchor="end">{escape(label)}</text>'
            f'<rect x="240" y="{y}" width="{length:.1f}" height="16" fill="{_COLORS[0]}"/>'
            f'<text x="{246 + length:.1f}" y="{y + 12}">{value:.4g} {escape(unit)}</text>'
        )
    return _document(title, 50 + 24 * len(values), rows)


def lines(title: str, x_label: str, y_label: str, series: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """An SVG with a line per series, both axes logarithmic; values below a thousandth are drawn there."""
    points = [(x, max(y, 1e-3)) for found in series.values() for x, y in found]
    (left, right), (low, high) = (_decades([point[axis] for point in points]) for axis in (0, 1))
    rows = []

    def place(x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - left) / (right - left)
        up = (math.log10(max(y, 1e-3)) - low) / (high - low)
        return 70 + 400 * across, 300 - 250 * up

    for decade in range(low, high + 1):
        _, y = place(10**left, 10.0**decade)
        rows.append(
            f'<path d="M70 {y:.1f}H470" stroke="#ddd"/>'
            f'<text x="64" y="{y + 4:.1f}" text-anchor="end">{10.0**decade:g}</text>'
        )
    for decade in range(left, right + 1):
        x, _ = place(10.0**decade, 10.0**low)
        rows.append(f'<text x="{x:.1f}" y="318" text-anchor="middle">{10.0**decade:g}</text>')
    rows.append(f'<text x="270" y="338" text-anchor="middle">{escape(x_label)}</text>')
    rows.append(f'<text x="14" y="175" text-anchor="middle" transform="rotate(-90 14 175)">{escape(y_label)}</text>')
    for number, (label, found) in enumerate(series.items()):
        color = _COLORS[number % len(_COLORS)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in found))
        rows.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        rows.append(f'<text x="485" y="{60 + 18 * number}" fill="{color}">{escape(label)}</text>')
    return _document(title, 350, rows)


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def _document(title: str, height: int, rows: Sequence[str]) -> str:
    heading = f'<text x="10" y="22" font-size="15" font-weight="bold">{escape(title)}</text>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" {_STYLE} role="img" '
        f'aria-label="{escape(title)}"><rect width="100%" height="100%" fill="white"/>{heading}{"".join(rows)}</svg>\n'
    )
