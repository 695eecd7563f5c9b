"""InferenceAlignment: the value of a policy after best-of-N by several criteria (arXiv 2602.01603)."""

from theorybench.envs.core.registry import register

register(
    "TheoryBench/InferenceAlignment-v0",
    "theorybench.envs.preference.inference_alignment.setting:InferenceAlignment",
    "theorybench.envs.preference.inference_alignment.oracle:InferenceAlignmentOracle",
    claims="theorybench.envs.preference.inference_alignment.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.preference.inference_alignment.studies:STUDIES",
)
