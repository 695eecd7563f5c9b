"""Two settings declared by tables have the values that were computed for them by other code."""

from pathlib import Path

import numpy as np
import pytest

import theorybench as tb
from theorybench.envs.core.finite.oracle import FiniteOracle
from theorybench.envs.core.policy import LegalTablePolicy
from theorybench.envs.core.registry import load_module

EXAMPLES = load_module(str(Path(__file__).with_name("examples.py")))
Memory, Thinking = EXAMPLES.Memory, EXAMPLES.Thinking


@pytest.mark.parametrize("setting", [Memory(T=5), Memory(T=3), Thinking(), Thinking(thoughts=2, instance=10_000)])
def test_the_checker_finds_nothing(setting):
    tb.testing.check_setting(setting)


def test_thinking_has_the_values_of_independent_code():
    """A dialogue with hidden worlds: 27,225 histories."""
    setting = Thinking()
    oracle = FiniteOracle(setting)
    assert len(setting.graph("histories")) == 27_225
    assert oracle.reference_value == pytest.approx(0.622946, abs=1e-6)
    assert oracle.optimal_value == pytest.approx(0.812017, abs=1e-6)
    assert oracle.open_loop == pytest.approx(0.777122, abs=1e-6)
    assert oracle.clairvoyant == pytest.approx(0.821798, abs=1e-6)
    assert oracle.value_of_readings == pytest.approx(0.034895, abs=1e-6)
    for always, value in enumerate((0.548462, 0.673777, 0.584576, 0.157734, -1.1, 0.0)):
        table = np.tile(np.eye(6)[always], (27_225, 1))
        found = oracle.evaluate(LegalTablePolicy(setting, "state", table))
        assert found["objective"] == pytest.approx(value, abs=1e-6)


def test_memory_has_the_values_of_independent_code():
    """Boards, of which there are 2^t (t + 1) at step t, and no hidden state: the chain is integrated out."""
    setting = Memory()
    oracle = FiniteOracle(setting)
    assert setting.state_view().rows == sum(2**t * (t + 1) for t in range(8))
    assert oracle.reference_value == pytest.approx(0.295125, abs=1e-6)
    assert oracle.optimal_value == pytest.approx(0.339011, abs=1e-6)
    for always, value in enumerate((0.198447, 0.318768)):
        table = np.tile(np.eye(2)[always], (setting.problem.num_nodes, 1))
        policy = LegalTablePolicy(setting, "state", table)
        assert oracle.evaluate(policy)["objective"] == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize("setting", [Memory(T=5), Thinking(thoughts=3)])
def test_play_agrees_with_the_oracle(setting):
    oracle = FiniteOracle(setting)
    names = ["objective", *setting.problem.outcomes, "kl"]
    for policy in (oracle.initial_policy, oracle.optimal_policy):
        told, played = oracle.evaluate(policy), oracle.estimate(policy)
        for name in names:
            assert abs(told[name] - played[name]) <= 4 * played[f"{name}_se"] + 1e-12
    assert oracle.score(oracle.optimal_policy) == 1.0 and oracle.score(oracle.reference_policy) == 0.0
