"""Scripts as users run them."""

import os
import subprocess
import sys

import pytest


@pytest.fixture
def run_script(tmp_path):
    """Run a script in a process and a folder of its own; return what it prints. It warns of and leaves nothing."""

    def run(path):
        folder = tmp_path / "folder"
        folder.mkdir()
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run([sys.executable, path], cwd=folder, env=environment, capture_output=True, text=True)
        assert (done.returncode, done.stderr, list(folder.iterdir())) == (0, "", [])
        return done.stdout

    return run
