"""A policy is rolled out in a setting and diagnosed: findings, each a few numbers and what they mean."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from theorybench.agents.api.rollout import Episodes, rollout
from theorybench.agents.diagnostics.summaries import Summary
from theorybench.agents.diagnostics.zero_flow import TARGETS, ZeroFlow, zero_flow
from theorybench.envs.core.errors import ConfigurationError, ParameterError, require_integer
from theorybench.envs.core.registry import load_module, resolve_setting
from theorybench.envs.core.setting import Setting
from theorybench.leaderboard.running.policies import find_policy

#: Environments that are stepped together.
TOGETHER = 4096
#: The p-value from which on a summary counts as refuted.
LEVEL = 0.05


@dataclasses.dataclass(frozen=True)
class DiagnosticFinding:
    """What one diagnostic found."""

    diagnostic: str  # its name, such as "zero-flow"
    asked: dict[str, str]  # what it was asked about
    values: dict[str, Any]  # numbers and flags, by name
    meaning: str  # one line


@dataclasses.dataclass(frozen=True)
class Diagnosis:
    """Findings about a policy in a setting."""

    env_id: str
    parameters: dict[str, Any]  # of the setting, all of them
    policy: str
    episodes: int  # that were rolled out
    seed: int
    findings: tuple[DiagnosticFinding, ...]


def diagnose(
    policy: Any,
    env_id: str,
    *,
    summaries: Sequence[str | Summary] = (),
    targets: Sequence[str] = ("reward",),
    episodes: int = 4000,
    seed: int = 0,
    flips: int = 999,
    features: str = "linear",
    **parameters: Any,
) -> Diagnosis:
    """Roll a policy out and test, for each summary and target, whether the summary is sufficient: see `zero_flow`.

    Args:
        policy: any object with `probs`, or a name as `theorybench.evaluate` takes it.
        env_id: a registered id, its short form, "module:ID" or "path/to/file.py:ID", with parameters in brackets where
            it has any.
        summaries: as `zero_flow` takes them; or "file.py:name" of a function of observations. The view that tables of
            the setting have, where there are none.
        targets: "reward", "reply" and "action".
        episodes: of the roll-out.
        seed: of the roll-out and of the tests.
        flips: as in `zero_flow`.
        features: likewise.
        parameters: of the setting; they win over those in brackets.

    Raises:
        UnknownNameError: no such id or policy; the closest are suggested.
        ParameterError: a parameter, summary, target or number out of its range.
        ConfigurationError: a file that cannot be imported, or that has no such function.
    """
    require_integer("episodes", episodes, 3)
    for target in targets:
        if target not in TARGETS:
            raise ParameterError("target", target, "one of " + ", ".join(map(repr, TARGETS)))
    id, setting = resolve_setting(env_id, parameters)
    tested = [(name_of(one), found_summary(one)) for one in summaries or (setting.policy_view,)]
    acting = find_policy(policy, id, setting) if isinstance(policy, (str, Path)) else policy
    log = _rolled_out(id, setting, acting, episodes, seed)
    findings = [
        finding(name, target, zero_flow(log, setting, summary, target, flips=flips, features=features, seed=seed))
        for target in targets
        for name, summary in tested
    ]
    label = str(policy) if isinstance(policy, (str, Path)) else type(policy).__name__
    return Diagnosis(id, setting.parameters, label, episodes, seed, tuple(findings))


def name_of(summary: str | Summary) -> str:
    """Return what a summary is called."""
    return summary if isinstance(summary, str) else str(getattr(summary, "__name__", None) or type(summary).__name__)


def found_summary(summary: str | Summary) -> Summary:
    """Return a summary that may be named as "module:name" or "file.py:name"."""
    if not isinstance(summary, str) or ":" not in summary:
        return summary
    module, _, name = summary.rpartition(":")
    found = getattr(load_module(module), name, None)
    if not callable(found):
        raise ConfigurationError(f"{module} has no function {name}: expected one of observations (n, tokens)")
    return found  # type: ignore[no-any-return]


def _rolled_out(env_id: str, setting: Setting, policy: Any, episodes: int, seed: int) -> Episodes:
    envs = gym.make_vec(env_id, num_envs=min(episodes, TOGETHER), **setting.parameters)
    try:
        envs.reset(seed=seed)
        return rollout(envs, policy, episodes=episodes, rng=np.random.default_rng([seed, 1]))
    finally:
        envs.close()


def finding(summary: str, target: str, found: ZeroFlow) -> DiagnosticFinding:
    """Return the result of a test with what it means."""
    asked = {"summary": summary, "target": target}
    what = TARGETS[target]
    if found.p_value <= LEVEL:
        meaning = f"refuted at {LEVEL:.0%}: what it forgets of the history tells of {what}"
    elif found.p_value == 1.0 and found.flow == 0.0:
        meaning = f"nothing to see: where summaries were equal, either histories were or {what}"
    else:
        meaning = f"not refuted: nothing was seen that it forgets and that tells of {what}"
    return DiagnosticFinding("zero-flow", asked, dataclasses.asdict(found), meaning)
