"""Lists the sub-packages, each folder of a room that holds an `__init__.py`; all else stands in pyproject.toml."""

import tomllib
from pathlib import Path

from setuptools import find_packages, setup

rooms = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["package-dir"]
setup(packages=[p for room, folder in rooms.items() for p in (room, *(f"{room}.{s}" for s in find_packages(folder)))])
