"""Follow a pointer r times: look-ups of what the look-up before has found (setting ours; loops: arXiv 2502.21212)."""

from theorybench.envs.core.registry import register
from theorybench.envs.recall.pointer_chase.oracle import DIFFICULTIES, PointerChaseOracle
from theorybench.envs.recall.pointer_chase.render import PointerChaseRenderer
from theorybench.envs.recall.pointer_chase.setting import PointerChase

register(
    "TheoryBench/PointerChase-v0",
    PointerChase,
    PointerChaseOracle,
    claims="theorybench.envs.recall.pointer_chase.claims:CLAIMS",
    budget=65_536,
    studies="theorybench.envs.recall.pointer_chase.studies:STUDIES",
    difficulties=DIFFICULTIES,
    renderer=PointerChaseRenderer(),
)
