"""Small SVG plots of bars, without a plotting library."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape


def bars(title: str, values: Mapping[str, float], unit: str) -> str:
    most = max(values.values(), default=0.0) or 1.0
    rows = [f'<text x="10" y="22" font-size="15" font-weight="bold">{escape(title)}</text>']
    for index, (label, value) in enumerate(values.items()):
        y, length = 40 + 24 * index, 380 * value / most
        rows.append(
            f'<text x="230" y="{y + 12}" text-anchor="end">{escape(label)}</text>'
            f'<rect x="240" y="{y}" width="{length:.1f}" height="16" fill="#0b6e99"/>'
            f'<text x="{246 + length:.1f}" y="{y + 12}">{value:.4g} {escape(unit)}</text>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {50 + 24 * len(values)}" font-family="sans-serif" '
        f'font-size="12" role="img" aria-label="{escape(title)}"><rect width="100%" height="100%" fill="white"/>'
        f"{''.join(rows)}</svg>\n"
    )
