"""Settings declared by tables have the values that were computed for them by other code."""

from pathlib import Path

import numpy as np
import pytest

import theorybench as tb
from theorybench.envs.core.finite.oracle import FiniteOracle
from theorybench.envs.core.policy import LegalTablePolicy
from theorybench.envs.core.registry import load_module

EXAMPLES = load_module(str(Path(__file__).with_name("examples.py")))
Thinking, TwoGauges = EXAMPLES.Thinking, EXAMPLES.TwoGauges


@pytest.mark.parametrize("setting", [Thinking(), Thinking(thoughts=2, instance=10_000), TwoGauges()])
def test_the_checker_finds_nothing(setting):
    tb.testing.check_setting(setting)


def test_thinking_has_the_values_of_independent_code():
    """A dialogue with hidden worlds: 27,225 histories."""
    setting = Thinking()
    oracle = FiniteOracle(setting)
    assert len(setting.graph("histories")) == 27_225
    found = [oracle.reference_value, oracle.optimal_value, oracle.open_loop, oracle.clairvoyant]
    assert found == pytest.approx([0.622946, 0.812017, 0.777122, 0.821798], abs=1e-6)
    assert oracle.optimal_value - oracle.open_loop == pytest.approx(0.034895, abs=1e-6)
    assert constants(oracle) == pytest.approx([0.548462, 0.673777, 0.584576, 0.157734, -1.1, 0.0], abs=1e-6)


def constants(oracle):
    """Value each policy that does one thing always."""
    setting = oracle.setting
    tables = [np.tile(row, (setting.state_view().rows, 1)) for row in np.eye(setting.num_actions)]
    return [oracle.evaluate(LegalTablePolicy(setting, "state", table))["objective"] for table in tables]


def test_play_agrees_with_the_oracle():
    setting = Thinking(thoughts=3)
    oracle = FiniteOracle(setting)
    names = ["objective", *setting.problem.outcomes, "kl"]
    for policy in (oracle.initial_policy, oracle.optimal_policy):
        told, played = oracle.evaluate(policy), oracle.estimate(policy)
        for name in names:
            assert abs(told[name] - played[name]) <= 4 * played[f"{name}_se"] + 1e-12
    assert oracle.score(oracle.optimal_policy) == 1.0 and oracle.score(oracle.reference_policy) == 0.0


def test_replies_may_be_of_two_tokens():
    """Two looks of two gauges are four votes, of which the better half is right."""
    setting = TwoGauges()
    assert setting.num_reply_tokens == 2 and setting.response_length == 9
    q = 0.8
    majority = q**4 + 4 * q**3 * (1 - q) + 3 * q**2 * (1 - q) ** 2
    agreed, oracle = q**2 + (1 - q) ** 2, FiniteOracle(setting)
    right = q**2 / agreed
    # Who sees the gauges disagree looks again for .01, since two votes are then worth the second look.
    after = {True: max(right, majority_after(q, 2) - 0.01), False: max(0.5, majority_after(q, 0) - 0.01)}
    value = agreed * after[True] + (1 - agreed) * after[False] - 0.01
    assert oracle.optimal_value == pytest.approx(value, abs=1e-12)
    assert oracle.optimal_value <= majority - 0.01


def majority_after(q, lead):
    """Give the chance that the leader of the votes is right, after two more votes for a lead of 0 or 2."""
    first = q**lead / (q**lead + (1 - q) ** lead)
    chances = {True: (q**2, 2 * q * (1 - q), (1 - q) ** 2), False: ((1 - q) ** 2, 2 * q * (1 - q), q**2)}
    total = 0.0
    for votes, step in enumerate((2, 0, -2)):
        right, wrong = first * chances[True][votes], (1 - first) * chances[False][votes]
        total += max(right, wrong) if lead + step else (right + wrong) / 2
    return total
