"""Theory of metadata as executable claims."""

from theorybench.envs.core.evidence.claim import Claim

CLAIMS: tuple[Claim, ...] = ()
