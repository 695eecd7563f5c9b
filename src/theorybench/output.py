"""How commands print: to a terminal, or strict JSON."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

Json = Annotated[bool, typer.Option("--json", help="Print strict JSON, and nothing else, on standard output.")]


def make_console(stderr: bool = False) -> "Console":
    """Return a terminal on standard output, or on standard error."""
    from rich.console import Console

    return Console(stderr=stderr)


def print_json(value: Any) -> None:
    """Print strict JSON: infinities and NaN are the strings "inf", "-inf" and "nan"."""
    from theorybench.leaderboard.records.record import json_value

    print(json.dumps(json_value(value), indent=2, allow_nan=False))
