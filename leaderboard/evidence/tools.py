"""Tools that have claims and studies of their own: what trains or judges on many settings, and belongs to none of them.

`theorybench claims mezo` checks those of a tool, `theorybench study mezo` shows its study. They are made above the
settings and the agents, since they train; each is bound to one setting, whose lab it is given.
"""

import importlib
from collections.abc import Sequence
from typing import Any, NamedTuple


class Tool(NamedTuple):
    """Where claims and studies of a tool stand, "package.module:NAME" or "", and what they are bound to by default."""

    env_id: str
    claims: str
    studies: str


_MEZO = "theorybench.leaderboard.evidence.mezo"
#: By name.
TOOLS = {
    "mezo": Tool("TheoryBench/TreeMarkovChain-v0", f"{_MEZO}.claims:CLAIMS", f"{_MEZO}.study:STUDIES"),
    "zero-flow": Tool("TheoryBench/TreeMarkovChain-v0", "theorybench.leaderboard.diagnosing.claims:CLAIMS", ""),
    "loss-path": Tool("TheoryBench/PreferenceBandit-v0", "theorybench.leaderboard.diagnosing.path_claims:CLAIMS", ""),
}


def evidence_of(place: str) -> Sequence[Any]:
    """Return the claims or studies that stand somewhere, importing what makes them."""
    if not place:
        return ()
    module, _, name = place.partition(":")
    found: Sequence[Any] = getattr(importlib.import_module(module), name)
    return found
