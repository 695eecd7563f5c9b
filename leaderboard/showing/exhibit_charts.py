"""The interactive figures of studies, as plain plotly.js dictionaries."""

import math
from typing import Any

from theorybench.envs.core.evidence.study import Axis, Chart, Series
from theorybench.leaderboard.showing.curves import plotly_text
from theorybench.leaderboard.showing.exhibit_layout import (
    WORDS,
    dodge,
    has_band,
    log_ticks,
    place_labels,
    shortened,
    tick_texts,
    x_range,
    y_range,
)
from theorybench.leaderboard.showing.styles import Style, translucent

#: Distance of labels as a share of the height of a chart; pixels of a letter and of the space before it.
GAP, LETTER, SPACE = 0.062, 7.3, 16
#: The script of the page draws this in the colour of its text.
INK = "black"


def study_figure(chart: Chart, styles: dict[str, Style], place: str) -> dict[str, Any]:
    """Draw a chart: bands first, then lines, then points, and each group's label at the right edge.

    Args:
        chart: what is drawn.
        styles: how each group is drawn.
        place: id of the chart in its page; the reader hides groups of one chart, `<place>/<group>`.
    """
    parts: list[tuple[int, dict[str, Any]]] = []
    for series in chart.series:
        own, meta = styles[series.group], f"{place}/{series.group}"
        common = {
            "type": "scatter",
            "name": plotly_text(series.group),
            "meta": meta,
            "x": series.x,
            "y": series.y,
            "customdata": [_interval(series, i) for i in range(len(series.x))],
            "hovertemplate": _hover(chart, series),
        }
        if series.style == "band" and series.low:
            parts.append((0, {**common, **_shade(series, own)}))
        parts.append((1 if series.style in ("band", "predicted") else 2, {**common, **_marks(chart, series, own)}))
    data = [part for _, part in sorted(parts, key=lambda entry: entry[0])]
    labels = place_labels(chart, GAP)
    right = labels.side == "right"
    annotations = [
        {
            "name": f"{place}/{group}",
            "text": plotly_text(shortened(group)),
            "xref": "paper",
            "yref": "paper",
            "x": 1 if right else 0,
            "xanchor": "left" if right else "right",
            "xshift": (SPACE if right else -SPACE) // 2,
            "y": height,
            "yanchor": "middle",
            "showarrow": False,
            "captureevents": True,
            "font": {"color": styles[group].colour, "size": 12},
        }
        for group, height in labels.heights.items()
    ]
    room = round(SPACE + LETTER * max(len(shortened(group)) for group in chart.groups))
    layout = {
        "xaxis": _axis(chart.x, x_range(chart)),
        "yaxis": _axis(chart.y, y_range(chart)) | ({} if right else {"side": "right"}),
        "annotations": annotations,
        "margin": {"r": room} if right else {"l": room, "r": 56},
    }
    return {"data": data, "layout": layout}


def _axis(axis: Axis, ends: tuple[float, float]) -> dict[str, Any]:
    log = axis.scale == "log"
    layout: dict[str, Any] = {
        "title": {"text": plotly_text(axis.title)},
        "type": axis.scale,
        "range": [math.log10(end) if log else end for end in ends],
    }
    if axis.ticks:
        layout |= {"tickvals": axis.ticks, "ticktext": tick_texts(axis.ticks)}
    elif log:
        places, texts = zip(*log_ticks(ends), strict=True)
        layout |= {"tickvals": places, "ticktext": texts}
    return layout


def _interval(series: Series, point: int) -> str:
    return f" [{series.low[point]:.4g}, {series.high[point]:.4g}]" if series.low else ""


def _hover(chart: Chart, series: Series) -> str:
    titles = plotly_text(chart.x.title), WORDS[series.style]
    return f"<b>%{{fullData.name}}</b>, {titles[1]}<br>%{{y:.4g}}%{{customdata}}<br>{titles[0]} %{{x:,}}<extra></extra>"


def _shade(series: Series, own: Style) -> dict[str, Any]:
    return {
        "mode": "lines",
        "x": (*series.x, *reversed(series.x)),
        "y": (*series.low, *reversed(series.high)),
        "fill": "toself",
        "fillcolor": translucent(own.colour, 0.2),
        "line": {"width": 0},
        "hoverinfo": "skip",
        "hovertemplate": None,
    }


def _marks(chart: Chart, series: Series, own: Style) -> dict[str, Any]:
    """Return how the points of a series are drawn."""
    if series.style == "predicted":
        colour, dashed = INK if has_band(chart, series.group) else own.colour, has_band(chart)
        line = {"color": colour, "width": 1.3 if dashed else 1.7, "dash": "dash" if dashed else "solid"}
        mark = {"symbol": "line-ew-open", "size": 14, "color": colour, "line": {"width": 1.7}}
        return {"mode": "markers" if len(series.x) == 1 else "lines", "line": line, "marker": mark}
    if series.style == "band":
        return {"mode": "lines", "line": {"color": own.colour, "width": 2.2, "dash": own.dash}}
    if series.style == "published":
        ring = {"symbol": "circle-open", "size": 10, "color": own.colour, "line": {"width": 2}}
        return {"mode": "markers", "marker": ring}
    if series.style == "censored":
        place = round(dodge(chart, series.group) + 1)  # left of it, on it, right of it
        return {
            "mode": "text",
            "text": ["↥"] * len(series.x),
            "textposition": ("top left", "top center", "top right")[place],
            "textfont": {"color": own.colour, "size": 18},
        }
    counted = series.style == "simulated"
    mark = {"symbol": "x-thin-open" if counted else own.symbol, "size": 7 if counted else 6.5, "color": own.colour}
    bars = {
        "type": "data",
        "symmetric": False,
        "array": [high - y for y, high in zip(series.y, series.high, strict=False)],
        "arrayminus": [y - low for y, low in zip(series.y, series.low, strict=False)],
        "thickness": 1.2,
        "width": 0,
        "color": own.colour,
    }
    thin = {"line": {"width": 1.6}} if counted else {}
    return {"mode": "markers", "marker": mark | thin, **({"error_y": bars} if series.low else {})}
