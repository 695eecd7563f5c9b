"""What went wrong with an agent, in words."""

import traceback
from pathlib import Path

from theorybench.envs.core.errors import NonFiniteError, TheoryBenchError


class AgentFailure(TheoryBenchError):
    """What went wrong in the process of an agent, in the words of its record.

    Attributes:
        status: that its record has: "failed", "nonfinite" or "killed".
    """

    def __init__(self, text: str, status: str) -> None:
        super().__init__(text, status)
        self.text, self.status = text, status

    def __str__(self) -> str:
        """What went wrong."""
        return self.text


def status_of(error: BaseException) -> str:
    """Return the status of a run that an error has ended."""
    if isinstance(error, AgentFailure):
        return error.status
    return "nonfinite" if isinstance(error, NonFiniteError) else "failed"


def describe(error: BaseException) -> str:
    """Say in one line what went wrong and, unless it is our own finding, where in the agent's file it happened."""
    if isinstance(error, AgentFailure):
        return str(error)
    text = f"{type(error).__name__}: {error}".strip().removesuffix(":")
    if isinstance(error, TheoryBenchError):
        return text
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_ours(frame.filename)]
    own = [frame for frame in frames if frame.filename == frames[0].filename]
    where = f" ({Path(own[-1].filename).name}, line {own[-1].lineno}, in {own[-1].name})" if own else ""
    return text + where


def _is_ours(filename: str) -> bool:
    """Return whether a source file belongs to the parts of the package that run agents."""
    root, file = Path(__file__).resolve().parents[2], Path(filename).resolve()
    return any(file.is_relative_to(root / room) for room in ("agents", "leaderboard", "envs/core"))
