"""TheoryBench: the reinforcement-learning benchmark with the answer key.

`import theorybench as tb` registers the environments `TheoryBench/...` with Gymnasium and offers everything public as
an attribute; what needs torch, the leaderboard or a plotting library is imported when it is first used.
"""

import contextlib
import signal
import sys

if (sys.argv or [""])[0].endswith(("/theorybench", "theorybench.exe")) or sys.orig_argv[1:3] == ["-m", "theorybench"]:
    with contextlib.suppress(ValueError):  # which a thread that is not the main one raises
        # While the command imports, Ctrl-C ends it without a traceback; `theorybench.cli.main` puts it back.
        signal.signal(signal.SIGINT, signal.SIG_DFL)

import importlib
from typing import TYPE_CHECKING, Any

from theorybench.envs.core import (
    Claim,
    ClaimResult,
    Difficulty,
    Law,
    LinearPolicy,
    Oracle,
    Policy,
    Setting,
    Sizes,
    Stream,
    Study,
    StudyResult,
    TablePolicy,
    View,
    list_envs,
    register,
)
from theorybench.envs.core.registry import discover

if TYPE_CHECKING:
    from theorybench import study, testing
    from theorybench.agents import Agent, Budget, Episodes, list_agents, make_agent, rollout
    from theorybench.agents.evaluation.offline import evaluate_offline
    from theorybench.leaderboard.diagnosing.diagnosis import diagnose
    from theorybench.leaderboard.evidence.lab import claims, studies
    from theorybench.leaderboard.records.record import Record
    from theorybench.leaderboard.records.store import read_records as records
    from theorybench.leaderboard.reporting.report import report
    from theorybench.leaderboard.running.policies import evaluate, load_policy, train
    from theorybench.leaderboard.running.runner import run
    from theorybench.leaderboard.running.sweeps import run_suite
    from theorybench.leaderboard.submissions.bundle import submit
    from theorybench.leaderboard.submissions.verifying import verify
    from theorybench.notebook import board, frame

__version__ = "0.1.0"

#: Public names that are imported when they are first used, and where they live.
_LAZY = {
    "Agent": "theorybench.agents",
    "Budget": "theorybench.agents",
    "Episodes": "theorybench.agents",
    "Record": "theorybench.leaderboard.records.record",
    "board": "theorybench.notebook",
    "claims": "theorybench.leaderboard.evidence.lab",
    "diagnose": "theorybench.leaderboard.diagnosing.diagnosis",
    "evaluate": "theorybench.leaderboard.running.policies",
    "evaluate_offline": "theorybench.agents.evaluation.offline",
    "frame": "theorybench.notebook",
    "list_agents": "theorybench.agents",
    "load_policy": "theorybench.leaderboard.running.policies",
    "make_agent": "theorybench.agents",
    "records": "theorybench.leaderboard.records.store:read_records",
    "report": "theorybench.leaderboard.reporting.report",
    "rollout": "theorybench.agents",
    "run": "theorybench.leaderboard.running.runner",
    "run_suite": "theorybench.leaderboard.running.sweeps",
    "studies": "theorybench.leaderboard.evidence.lab",
    "study": "theorybench.study:",
    "submit": "theorybench.leaderboard.submissions.bundle",
    "testing": "theorybench.testing:",
    "train": "theorybench.leaderboard.running.policies",
    "verify": "theorybench.leaderboard.submissions.verifying",
}

__all__ = [
    "Agent",
    "Budget",
    "Claim",
    "ClaimResult",
    "Difficulty",
    "Episodes",
    "StudyResult",
    "Law",
    "LinearPolicy",
    "Oracle",
    "Policy",
    "Record",
    "Setting",
    "Sizes",
    "Stream",
    "Study",
    "TablePolicy",
    "View",
    "board",
    "claims",
    "diagnose",
    "evaluate",
    "evaluate_offline",
    "frame",
    "list_agents",
    "list_envs",
    "load_policy",
    "make_agent",
    "records",
    "register",
    "report",
    "rollout",
    "run",
    "run_suite",
    "studies",
    "study",
    "submit",
    "testing",
    "train",
    "verify",
]

discover("theorybench.envs")


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _LAZY:
        raise AttributeError(f"module 'theorybench' has no attribute {name!r}")
    module, _, attribute = _LAZY[name].partition(":")
    found = importlib.import_module(module)
    value = found if _LAZY[name].endswith(":") else getattr(found, attribute or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List public names."""
    return __all__
