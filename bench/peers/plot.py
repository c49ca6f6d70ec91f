"""A bar chart as SVG text: no plotting library is needed for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_ROW, _GAP, _LABEL, _WIDTH, _PANEL = 18, 14, 170, 260, 500
_OURS, _OTHERS = "#1f6feb", "#b8c0cc"


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: its label, how long it is, and whether it is one of ours."""

    label: str
    value: float
    ours: bool


Panel = tuple[str, Sequence[tuple[str, Sequence[Bar]]]]


def bars(panels: Sequence[Panel]) -> str:
    """Panels side by side, each with groups of bars on one scale."""
    height = max(_height(groups) for _, groups in panels)
    width = _PANEL * len(panels)
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for k, panel in enumerate(panels):
        lines += _panel(panel, k * _PANEL)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _height(groups: Sequence[tuple[str, Sequence[Bar]]]) -> int:
    rows = sum(len(made) + 1 for _, made in groups if made)
    return 40 + rows * _ROW + len(groups) * _GAP


def _panel(panel: Panel, left: int) -> list[str]:
    title, groups = panel
    lines = [f'<text x="{left + 10}" y="22" font-size="14" font-weight="bold">{title}</text>']
    longest = max((bar.value for _, made in groups for bar in made), default=1.0)
    top = 40
    for name, made in groups:
        if not made:
            continue
        lines.append(f'<text x="{left + 10}" y="{top + 12}" fill="#555">{escape(name)}</text>')
        top += _ROW
        for bar in made:
            lines += _bar(bar, left, top, longest)
            top += _ROW
        top += _GAP
    return lines


def _bar(bar: Bar, left: int, top: int, longest: float) -> list[str]:
    start, size = left + _LABEL, max(bar.value / longest * _WIDTH, 1)
    color = _OURS if bar.ours else _OTHERS
    shown = f"{bar.value:.0f}" if bar.value >= 100 else f"{bar.value:.1f}"
    return [
        f'<text x="{start - 6}" y="{top + 12}" text-anchor="end">{escape(bar.label)}</text>',
        f'<rect x="{start}" y="{top + 2}" width="{size:.1f}" height="{_ROW - 5}" fill="{color}"/>',
        f'<text x="{start + size + 5:.1f}" y="{top + 12}">{shown}</text>',
    ]
