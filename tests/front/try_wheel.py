"""Build the sdist and from it the wheel, install it away from the source, import every module, make every environment.

Run by `make wheel`. Dependencies come from the running interpreter's environment, through a .pth file.
"""

import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

TRY = """
import importlib, pathlib, pkgutil, sys, warnings
warnings.simplefilter("error", ResourceWarning)
import gymnasium, theorybench as tb
home = pathlib.Path(tb.__file__).parent
assert home.is_relative_to(sys.prefix), home
assert (home / "py.typed").is_file()
modules = [module.name for module in pkgutil.walk_packages(tb.__path__, "theorybench.")]
for name in modules:
    if not name.endswith("__main__"):
        importlib.import_module(name)
missing = [name for name in tb.__all__ if not hasattr(tb, name)]
assert not missing, missing
for id in tb.list_envs():
    gymnasium.make(id).reset(seed=0)
    gymnasium.make_vec(id, num_envs=2).reset(seed=0)
print(f"{len(modules)} modules, {len(tb.list_envs())} environments, {len(tb.list_agents())} agents")
"""


def main() -> None:
    """Raise CalledProcessError where a step fails."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch).resolve()
        python = folder / "venv" / "bin" / "python"
        environment = {**os.environ, "MPLBACKEND": "Agg"}
        environment.pop("PYTHONPATH", None)

        def call(*command: str | Path) -> None:
            subprocess.run([str(part) for part in command], cwd=folder, env=environment, check=True)

        call(sys.executable, "-m", "build", "--outdir", folder / "dist", ROOT)
        wheel = next((folder / "dist").glob("*.whl"))
        call(sys.executable, "-m", "venv", folder / "venv")
        (site,) = (folder / "venv").glob("lib/python*/site-packages")
        (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
        call(python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps", wheel)
        call(python, "-c", TRY)
        call(folder / "venv" / "bin" / "theorybench", "list")
        call(python, "-m", "theorybench", "--help")


if __name__ == "__main__":
    main()
