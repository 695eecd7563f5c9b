"""The settings that ship: one registration each."""

from theorybench.envs.core.registry import register  # noqa: F401
