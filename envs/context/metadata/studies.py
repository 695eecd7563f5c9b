"""Figures on metadata."""

from theorybench.envs.core.evidence.study import Study

STUDIES: tuple[Study, ...] = ()
