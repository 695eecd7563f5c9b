"""What a benchmark measured, stored for the page of speed: rows with the machine, versions and date."""

import datetime
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from theorybench.envs.kept import atomic_write
from theorybench.leaderboard.running.provenance import hardware, versions


def store(path: Path, rows: Sequence[dict[str, Any]], keep: Callable[[dict[str, Any]], bool] | None = None) -> None:
    """Write rows; with `keep`, beside those that are there and are to stay.

    Args:
        path: a JSON file.
        rows: one for each measurement.
        keep: whether a row that is there stays; None for none.
    """
    held = json.loads(path.read_text(encoding="utf-8"))["rows"] if keep and path.exists() else []
    values = {
        "hardware": hardware(),
        "versions": versions(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "rows": [*filter(keep, held), *map(_rounded, rows)],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(json.dumps(values, indent=1) + "\n")


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    return {name: float(f"{value:.5g}") if isinstance(value, float) else value for name, value in row.items()}
