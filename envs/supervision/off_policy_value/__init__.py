"""A new policy that only logs can judge: how to evaluate it, on how much log, and whether to deploy it."""

from theorybench.envs.core.registry import register
from theorybench.envs.supervision.off_policy_value.oracle import DIFFICULTIES, OffPolicyValueOracle
from theorybench.envs.supervision.off_policy_value.render import OffPolicyValueRenderer
from theorybench.envs.supervision.off_policy_value.setting import OffPolicyValue

register(
    "TheoryBench/OffPolicyValue-v0",
    OffPolicyValue,
    OffPolicyValueOracle,
    claims="theorybench.envs.supervision.off_policy_value.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.supervision.off_policy_value.studies:STUDIES",
    difficulties=DIFFICULTIES,
    renderer=OffPolicyValueRenderer(),
)
