"""Keep language models where what may be lost is kept."""

import os
import tempfile
from pathlib import Path

os.environ.setdefault("THEORYBENCH_CACHE", str(Path(tempfile.gettempdir()) / "theorybench-tests"))
