"""What benchmarks store: rows beside the hardware, the versions and the date."""

import datetime
import importlib.metadata
import json
import os
import platform
from pathlib import Path
from typing import Any

#: Distributions whose versions matter to speed.
DISTRIBUTIONS = ("theorybench", "gymnasium", "numpy", "scipy", "numba", "torch")


def hardware() -> str:
    """Name the processor and its cores."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{models[0] if models else platform.processor() or platform.machine()}, {os.cpu_count()} cores"


def versions() -> dict[str, str]:
    """Return the versions of Python and of what is installed."""
    found = {"python": platform.python_version()}
    for name in DISTRIBUTIONS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def store(path: Path | None, rows: list[dict[str, Any]]) -> None:
    """Write rows to a JSON file, where one is named."""
    if path is None:
        return
    date = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = {"hardware": hardware(), "versions": versions(), "date": date, "rows": rows}
    path.write_text(json.dumps(whole, indent=1) + "\n")
