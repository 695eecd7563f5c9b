"""Register the toy settings of the core's tests."""

from pathlib import Path

from theorybench.envs.core.plugins import load_module

load_module(str(Path(__file__).parents[1] / "envs" / "core" / "toys.py"))
