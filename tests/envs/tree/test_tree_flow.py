"""The population flow: the paper's numbers, and its gradient against differences of the exact pass@1."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from theorybench.envs.tree.flow import outcome_gradient, population_flow, softmax
from theorybench.envs.tree.markov_chain import TreeMarkovChain
from theorybench.envs.tree.markov_chain_oracle import MarkovChainOracle
from theorybench.envs.tree.markov_class import node_policy

TRAINED = {
    "task_0/easy": 0.95141,
    "task_0/hard": 0.02990,
    "task_1/easy": 0.01481,
    "task_1/hard": 0.00845,
}


def test_the_numbers_of_the_paper() -> None:
    setting = TreeMarkovChain(train_tasks=(0,))
    oracle = MarkovChainOracle(setting)
    policy = node_policy(setting, population_flow(setting, 0.05, 1000))
    values = oracle.evaluate(policy, [*TRAINED, "task_0/pass@1", "task_0/pass@8", "task_0/pass@128"])
    assert {name: values[name] for name in TRAINED} == pytest.approx(TRAINED, abs=5e-6)
    assert values["task_0/pass@1"] == pytest.approx(0.696, abs=5e-4)
    assert values["task_0/pass@8"] == pytest.approx(0.736, abs=5e-4)
    assert values["task_0/pass@128"] == pytest.approx(0.785, abs=5e-4)


@settings(max_examples=15, deadline=None)
@given(st.integers(2, 5), st.integers(1, 3), st.integers(2, 4), st.integers(0, 10**6))
def test_the_gradient_equals_differences(L: int, M0: int, M: int, instance: int) -> None:
    setting = TreeMarkovChain(L=L, M0=M0, M=M, num_tasks=M0, instance=instance)
    oracle, rng = MarkovChainOracle(setting), np.random.default_rng(instance)
    logits = rng.normal(size=setting.chain.shape)
    task = int(rng.integers(M0))

    def value(theta: np.ndarray) -> float:
        return oracle.evaluate(node_policy(setting, softmax(theta)), [f"task_{task}/pass@1"])[f"task_{task}/pass@1"]

    gradient = outcome_gradient(setting, softmax(logits), task)
    assert np.abs(gradient.sum(axis=1)).max() < 1e-14
    direction = rng.normal(size=logits.shape)
    slope = (value(logits + 1e-5 * direction) - value(logits - 1e-5 * direction)) / 2e-5
    assert (gradient * direction).sum() == pytest.approx(slope, abs=1e-8)


def test_the_flow_averages_over_training_tasks() -> None:
    both, alone = TreeMarkovChain(), [TreeMarkovChain(train_tasks=(task,)) for task in (0, 1)]
    step = np.log(population_flow(both, 1e-4, 1)) - np.log(both.chain)
    parts = [np.log(population_flow(s, 1e-4, 1)) - np.log(s.chain) for s in alone]
    np.testing.assert_allclose(step, (parts[0] + parts[1]) / 2, atol=1e-8)
