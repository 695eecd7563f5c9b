"""Scripts as users run them."""

import os
import subprocess
import sys

import pytest

from theorybench import cli


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


@pytest.fixture
def command(monkeypatch, capsys):
    """Run the command line in this process: (exit code, standard output, standard error)."""

    def call(*arguments):
        monkeypatch.setenv("COLUMNS", "120")
        monkeypatch.setattr(sys, "argv", ["theorybench", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        printed = capsys.readouterr()
        return stopped.value.code or 0, printed.out, printed.err

    return call
