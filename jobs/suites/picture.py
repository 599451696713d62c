"""The results as one SVG: bars with their 95 % intervals, the service beside the floor.

Written by hand, because it is a few rectangles. The colours read on light and on dark ground, and
there is no ground of its own. Directions are set: the picture stays the same on a page that runs
from right to left, and a Hebrew name keeps to its place.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from jobs.suites.rows import Headline
from rayapp.search.rules.evaluation import Estimate

# Pixels.
WIDTH, MARGIN = 760, 16
LABEL_WIDTH, NUMBER_WIDTH = 310, 48
BAR, BAR_GAP, ROW_GAP, TITLE_HEIGHT, LEGEND_HEIGHT = 11, 2, 8, 30, 46
PLOT = WIDTH - 2 * MARGIN - LABEL_WIDTH - NUMBER_WIDTH
LEFT = MARGIN + LABEL_WIDTH
# Contrast of at least 3:1 against white and against black; text at least 4.5:1.
TEXT, SERVICE, FLOOR, INTERVAL = "#767676", "#2f7fd0", "#8a8a8a", "#b36200"
GRID_STEPS = 4  # quarters of the scale from 0 to 1
NAME_CHARS = 30  # a longer label would run into the bars
# First-strong isolate and its end: a name of any script does not turn its neighbours around.
ISOLATE, END_ISOLATE = "\u2068", "\u2069"


@dataclass(frozen=True, slots=True)
class _Bar:
    value: Estimate
    colour: str
    system: str


def picture(suites: Mapping[str, Sequence[Headline]], caption: str) -> str:
    """The SVG document; a suite without a headline is left out."""
    parts: list[str] = [*_legend(caption)]
    top = MARGIN + LEGEND_HEIGHT
    for name, rows in suites.items():
        if not rows:
            continue
        parts.append(draw_text(MARGIN, top + 18, name, weight="bold", size=14))
        top += TITLE_HEIGHT
        start, drawn = top, []
        for row in rows:
            drawn += _row(row, top)
            top += _height(row) + ROW_GAP
        parts += [*_grid(start, top - ROW_GAP), *drawn]
        top += ROW_GAP
    return svg_document("\n".join(parts), top + MARGIN, caption)


def svg_document(body: str, height: int, caption: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" role="img" aria-label={quoteattr(caption)} '
        'direction="ltr" font-family="system-ui, sans-serif" font-size="12">\n'
        f"<title>{escape(caption)}</title>\n{body}\n</svg>\n"
    )


def _legend(caption: str) -> list[str]:
    top = MARGIN + 12
    parts = [draw_text(MARGIN, top, caption, weight="bold", size=14)]
    at = MARGIN
    for colour, name in ((SERVICE, "service"), (FLOOR, "plain BM25")):
        parts.append(draw_box(at, top + 12, BAR, BAR, colour))
        parts.append(draw_text(at + BAR + 6, top + 22, name))
        at += 120
    parts.append(_line((at, top + 17), (at + 20, top + 17), INTERVAL, 2))
    parts.append(draw_text(at + 26, top + 22, "95 % interval"))
    return parts


def _bars(row: Headline) -> list[_Bar]:
    bars = [_Bar(row.service, SERVICE, "service")]
    if row.floor is not None:
        bars.append(_Bar(row.floor, FLOOR, "plain BM25"))
    return bars


def _height(row: Headline) -> int:
    count = len(_bars(row))
    return count * BAR + (count - 1) * BAR_GAP


def _row(row: Headline, top: int) -> list[str]:
    label = f"{ISOLATE}{_short(row.part)}{END_ISOLATE} {row.metric} (n {row.service.n})"
    middle = top + _height(row) // 2 + 4
    parts = [draw_text(LEFT - 8, middle, label, anchor="end")]
    for number, bar in enumerate(_bars(row)):
        y = top + number * (BAR + BAR_GAP)
        value = bar.value
        tip = f"{row.part}, {row.metric}, {bar.system}: {_numbers(value)}"
        parts.append(draw_box(LEFT, y, _x(value.mean) - LEFT, BAR, bar.colour, tip))
        line = y + BAR / 2
        parts.append(_line((_x(value.low), line), (_x(value.high), line), INTERVAL, 2))
        shown = f"{value.mean:.3f}"
        parts.append(draw_text(WIDTH - MARGIN, y + BAR - 1, shown, anchor="end", size=11))
    return parts


def _grid(top: int, bottom: int) -> list[str]:
    parts = []
    for step in range(GRID_STEPS + 1):
        x = _x(step / GRID_STEPS)
        parts.append(_line((x, top - 4), (x, bottom + 2), TEXT, 0.5, "0.5"))
    return parts


def _x(value: float) -> float:
    return LEFT + PLOT * min(1.0, max(0.0, value))


def _numbers(value: Estimate) -> str:
    return f"{value.mean:.3f} ({value.low:.3f}-{value.high:.3f})"


def _short(name: str) -> str:
    return name if len(name) <= NAME_CHARS else name[: NAME_CHARS - 1] + "…"


def draw_text(
    x: float, y: float, text: str, *, anchor: str = "start", weight: str = "normal", size: int = 12
) -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" fill="{TEXT}" text-anchor="{anchor}" font-size="{size}" '
        f'font-weight="{weight}" direction="ltr">{escape(text)}</text>'
    )


def draw_box(x: float, y: float, width: float, height: float, fill: str, tip: str = "") -> str:
    title = f"<title>{escape(tip)}</title>" if tip else ""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:.1f}" height="{height:g}" fill="{fill}">'
        f"{title}</rect>"
    )


def _line(
    start: tuple[float, float],
    end: tuple[float, float],
    stroke: str,
    width: float,
    opacity: str = "1",
) -> str:
    return (
        f'<line x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}" '
        f'stroke="{stroke}" stroke-width="{width:g}" opacity="{opacity}"/>'
    )
