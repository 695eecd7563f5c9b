"""Suites from Python and Jupyter: what `theorybench run` does."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from theorybench.leaderboard.running.arguments import choose_suite
from theorybench.leaderboard.running.matrix import Outcome, Watcher, sweep


def run_suite(
    suite: str | Path,
    out: str | Path | None = None,
    *,
    environments: Sequence[str] = (),
    agents: Sequence[str] = (),
    parameters: Mapping[str, Any] | None = None,
    seeds: int | Sequence[int] | None = None,
    budget: int | None = None,
    workers: int | None = None,
    timeout: float | None = None,
    batch_seeds: bool | None = None,
    save_policies: bool | None = None,
    retry: bool = False,
    quiet: bool = False,
) -> Outcome:
    """Train and score the agents of a suite in worker processes, and save each run; `board(out)` then compares them.

    What the folder has a record of is not run again: interrupt it at any time, and call it again to resume.

    Args:
        suite: the name of one that ships, such as "starter", or a TOML file.
        out: folder of the records; None for "results/" and the suite's name.
        environments: leave out all others, by label or id; parameters in brackets replace the suite's.
        agents: run these instead of the suite's: "rlvr", "rlvr[learning_rate=0.1]", "my_agent.py:MyAgent".
        parameters: of every environment, in place of the suite's.
        seeds: a number of them, or a list.
        budget: episodes of each run.
        workers: processes; None for one for each core.
        timeout: seconds that one run may take.
        batch_seeds: whether to train the seeds of an agent together where it can.
        save_policies: whether to keep the final policies; runs of which none was kept are then run again.
        retry: also run again what did not end well before.
        quiet: print no progress.

    Returns:
        How many runs the suite has, how many were there before, and the records of those that failed.

    Raises:
        UnknownNameError: no such suite, environment or agent; the closest are suggested.
        ConfigurationError: a file that cannot be read, or a suite that cannot be run.
        RecordError: the folder holds a record store that is damaged or foreign.
    """
    from rich.console import Console

    from theorybench.leaderboard.running.progress import ProgressWatcher

    is_file = isinstance(suite, Path) or suite.endswith(".toml")
    chosen = choose_suite(
        Path(suite) if is_file else None,
        None if is_file else str(suite),
        environments=environments,
        agents=agents,
        parameters=parameters,
        seeds=seeds if seeds is None or isinstance(seeds, int) else list(seeds),
        budget=budget,
        workers=workers,
        timeout=timeout,
        batch_seeds=batch_seeds,
        save_policies=save_policies,
    )
    watcher = Watcher() if quiet else ProgressWatcher(Console(stderr=True))
    return sweep(chosen, Path("results") / chosen.name if out is None else out, watcher=watcher, retry=retry)
