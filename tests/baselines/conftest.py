"""Register the toy settings of the core's tests, and keep language models where what may be lost is kept."""

import os
import tempfile
from pathlib import Path

from theorybench.envs.core.registry import load_module

load_module(str(Path(__file__).parents[1] / "envs" / "core" / "toys.py"))
os.environ.setdefault("THEORYBENCH_CACHE", str(Path(tempfile.gettempdir()) / "theorybench-tests"))
