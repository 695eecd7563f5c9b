"""A new policy that only logs can judge: how to evaluate it, on how much log, and whether to deploy it."""

from theorybench.envs.core.registry import register

register(
    "TheoryBench/OffPolicyValue-v0",
    "theorybench.envs.supervision.off_policy_value.setting:OffPolicyValue",
    "theorybench.envs.supervision.off_policy_value.oracle:OffPolicyValueOracle",
    claims="theorybench.envs.supervision.off_policy_value.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.supervision.off_policy_value.studies:STUDIES",
    difficulties="theorybench.envs.supervision.off_policy_value.oracle:DIFFICULTIES",
    renderer="theorybench.envs.supervision.off_policy_value.render:OffPolicyValueRenderer",
)
