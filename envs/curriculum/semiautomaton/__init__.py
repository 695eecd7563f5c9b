"""A hidden semiautomaton reads a word; only the final state is rewarded (arXiv 2510.04115)."""

from theorybench.envs.core.registry import register
from theorybench.envs.curriculum.semiautomaton.claims import CLAIMS
from theorybench.envs.curriculum.semiautomaton.oracle import DIFFICULTIES, SemiautomatonOracle
from theorybench.envs.curriculum.semiautomaton.setting import Semiautomaton
from theorybench.envs.curriculum.semiautomaton.studies import STUDIES

register(
    "TheoryBench/Semiautomaton-v0",
    Semiautomaton,
    SemiautomatonOracle,
    claims=CLAIMS,
    budget=20_000,
    studies=STUDIES,
    difficulties=DIFFICULTIES,
)
