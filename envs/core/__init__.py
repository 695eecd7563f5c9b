"""The foundation: Setting, Oracle, Claim, and the environments made from a Setting."""

from typing import TYPE_CHECKING

from theorybench.envs.lazy import lazily

if TYPE_CHECKING:
    from theorybench.envs.core.dynamics import Sizes
    from theorybench.envs.core.evidence.claim import Claim, ClaimResult
    from theorybench.envs.core.evidence.difficulty import Difficulty, Law
    from theorybench.envs.core.evidence.study import Study, StudyResult
    from theorybench.envs.core.oracle import Oracle
    from theorybench.envs.core.policy import LinearPolicy, Policy, TablePolicy
    from theorybench.envs.core.registry import list_envs, lookup, register
    from theorybench.envs.core.setting import Setting
    from theorybench.envs.core.streams import Stream
    from theorybench.envs.core.views import View

__all__ = [
    "Claim",
    "ClaimResult",
    "Difficulty",
    "StudyResult",
    "Law",
    "LinearPolicy",
    "Oracle",
    "Policy",
    "Setting",
    "Sizes",
    "Stream",
    "Study",
    "TablePolicy",
    "View",
    "list_envs",
    "lookup",
    "register",
]

if not TYPE_CHECKING:  # type checkers know the names
    __getattr__, __dir__ = lazily(__name__)
