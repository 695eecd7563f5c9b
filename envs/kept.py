"""Where the package keeps on disk what takes long to make and can be made again."""

import os
from pathlib import Path

#: The variable that names the folder.
FOLDER = "THEORYBENCH_CACHE"


def kept_folder() -> Path:
    """Return the folder, which may not exist yet: that of the variable THEORYBENCH_CACHE, or ~/.cache/theorybench."""
    return Path(os.environ.get(FOLDER) or Path.home() / ".cache" / "theorybench")
