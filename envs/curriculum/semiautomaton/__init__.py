"""A hidden semiautomaton reads a word; only the final state is rewarded (arXiv 2510.04115)."""

from theorybench.envs.core.registry import register
from theorybench.envs.curriculum.semiautomaton.oracle import DIFFICULTIES, SemiautomatonOracle
from theorybench.envs.curriculum.semiautomaton.render import SemiautomatonRenderer
from theorybench.envs.curriculum.semiautomaton.setting import Semiautomaton

register(
    "TheoryBench/Semiautomaton-v0",
    Semiautomaton,
    SemiautomatonOracle,
    claims="theorybench.envs.curriculum.semiautomaton.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.curriculum.semiautomaton.studies:STUDIES",
    difficulties=DIFFICULTIES,
    renderer=SemiautomatonRenderer(),
)
