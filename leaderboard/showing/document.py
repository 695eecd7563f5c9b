"""HTML files that need nothing else: figures, styles and the part of plotly.js that draws lines stand in them."""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from theorybench.envs.kept import atomic_write
from theorybench.leaderboard.showing.words import (
    cell,
    format_bytes,
    format_interval,
    format_number,
    format_queries,
    format_rank,
    format_seconds,
    format_share,
    format_values,
    is_known,
    is_text,
)

FOLDER = Path(__file__).parent
#: Share of its width that a strip leaves free at each end.
MARGIN = 0.04


class Scale(NamedTuple):
    """Places numbers on a strip from `low` to `high`, in percent of its width."""

    low: float
    high: float

    @classmethod
    def around(cls, low: float, high: float) -> Self:
        """Make a strip that shows both ends with a margin."""
        margin = MARGIN * (high - low)
        return cls(low - margin, high + margin)

    def at(self, value: float) -> str:
        """Return the place of a number."""
        return f"{100 * (value - self.low) / (self.high - self.low):.2f}"

    def width(self, low: float, high: float) -> str:
        """Return the width of an interval."""
        return f"{100 * (high - low) / (self.high - self.low):.2f}"


def write_document(text: str, path: str | Path) -> Path:
    """Write a page, atomically; return its absolute path."""
    with atomic_write(path) as file:
        file.write(text)
    return Path(path).resolve()


def escaping_environment(*folders: Path) -> Environment:
    """Return an environment of these folders' templates and of those beside this module; it escapes every value."""
    environment = Environment(
        loader=FileSystemLoader([*folders, FOLDER]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": format_number,
        "interval": format_interval,
        "rank": format_rank,
        "share": format_share,
        "queries": format_queries,
        "values": format_values,
        "seconds": format_seconds,
        "bytes": format_bytes,
    }
    return environment


def render_document(template: str, figures: Mapping[str, Mapping[str, Any]], **values: Any) -> str:
    """Fill a template that extends base.html.j2.

    Values are escaped wherever they stand, and the page's own policy runs no script but its two.

    Args:
        template: name of the file.
        figures: plotly figures by name, for the id of each place.
        values: what the template names.
    """
    environment = escaping_environment()
    plotly, *own = (
        (FOLDER / name).read_text(encoding="utf-8") for name in ("plotly-basic.min.js", "theme.js", "page.js")
    )
    scripts = [plotly, "".join(own)]
    return environment.get_template(template).render(
        figures=Markup(embedded(figures)),
        scripts=[Markup(script) for script in scripts],
        policy=_policy(scripts),
        cell=cell,
        is_text=is_text,
        is_known=is_known,
        **values,
    )


def embedded(value: Any) -> str:
    """Return JSON that can stand in a script, within an HTML page or beside it."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _policy(scripts: Sequence[str]) -> str:
    """Return a content security policy that runs these scripts alone and loads nothing."""
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{value}'" for value in hashes)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:"
