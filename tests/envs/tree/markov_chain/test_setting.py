"""Dynamics of the tree: what is observed, what a prompt fixes, what is rewarded, what is refused."""

import gymnasium as gym
import numpy as np
import pytest
import torch

from theorybench.envs.core.checks.setting import check_setting, check_vector_env
from theorybench.envs.core.errors import ParameterError
from theorybench.envs.tree.markov_chain.setting import TreeMarkovChain

ID = "TheoryBench/TreeMarkovChain-v0"
SETTINGS = {
    "canonical": {},
    "pool": {"num_questions": 5, "pass_k": 4, "train_tasks": (1,)},
    "shortest": {"L": 2, "M0": 1, "num_tasks": 1, "instance": 3},
    "two-words": {"L": 11, "M0": 7, "M": 3, "C": 2, "num_tasks": 3, "instance": 1, "train_tasks": (0, 2)},
    "board": {"L": 8, "M0": 6, "M": 6, "num_tasks": 6, "instance": 10_000},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_the_checkers_pass(name: str) -> None:
    check_setting(TreeMarkovChain(**SETTINGS[name]))
    check_vector_env(gym.make_vec(ID, num_envs=5, **SETTINGS[name]))


def play(envs, path: list[int], options: dict) -> tuple[np.ndarray, np.ndarray]:
    """Walk one path in all environments; the last observation and the total rewards."""
    first, _ = envs.reset(options=options)
    total = np.zeros(len(first))
    for action in path:
        _, rewards, terminated, _, _ = envs.step(np.full(len(first), action))
        total += np.asarray(rewards)
    assert terminated.all()
    return first, total


@pytest.mark.parametrize(
    ("start", "path", "acc"),
    [
        (0, [0, 0, 0], 0.727995),
        (0, [0, 1, 0], 0.132363),
        (0, [1, 0, 0], 0.007280),
        (0, [0, 0, 1], 0.0),
        (1, [0, 0, 1], 0.955691),
        (1, [1, 1, 1], 0.017376),
        (1, [0, 0, 0], 0.0),
    ],
)
def test_rewards_have_mean_acc_over_fresh_questions(start: int, path: list[int], acc: float) -> None:
    envs = gym.make_vec(ID, num_envs=40_000, autoreset_mode="Disabled")
    envs.reset(seed=5)
    first, total = play(envs, path, {})
    rewards = total[first[:, 0] == start + 1]
    assert 19_000 < len(rewards) < 21_000
    assert abs(rewards.mean() - acc) <= 4 * np.sqrt(acc * (1 - acc) / len(rewards)) + 5e-7
    assert set(rewards) <= {0.0, 1.0}


def test_a_prompt_fixes_task_and_question() -> None:
    envs = gym.make_vec(ID, num_envs=64, autoreset_mode="Disabled")
    prompts = np.repeat(np.arange(8), 8)
    outcomes = []
    for seed in (1, 2):
        envs.reset(seed=seed)
        outcomes.append([play(envs, [0, b, 0], {"prompt": prompts}) for b in (0, 1)])
    for (first, total), (other_first, other_total) in zip(*outcomes, strict=True):
        assert (first == other_first).all() and (total == other_total).all()
        assert all(len(set(total[prompts == p])) == 1 for p in range(8))


def test_members_of_a_question_are_independent() -> None:
    envs = gym.make_vec(ID, num_envs=40_000, autoreset_mode="Disabled", train_tasks=(0,))
    envs.reset(seed=0)
    prompts = np.arange(40_000)
    a, b = (play(envs, path, {"prompt": prompts})[1] for path in ([0, 0, 0], [0, 1, 0]))
    covariance = np.mean(a * b) - a.mean() * b.mean()
    assert abs(covariance) < 4 * np.sqrt(0.728 * 0.272 * 0.132 * 0.868 / 40_000)


def test_tasks_are_drawn_from_train_tasks() -> None:
    starts = gym.make_vec(ID, num_envs=4000, instance=2, M0=5, num_tasks=4, train_tasks=[1, 3])
    observed = starts.reset(seed=0)[0][:, 0] - 1
    tree = TreeMarkovChain(instance=2, M0=5, num_tasks=4).tree
    assert set(observed) == set(tree.starts[[1, 3]])
    assert abs(np.mean(observed == tree.starts[1]) - 0.5) < 4 * 0.5 / np.sqrt(4000)


def test_a_pool_has_that_many_questions() -> None:
    envs = gym.make_vec(ID, num_envs=500, num_questions=3)
    assert set(envs.reset(seed=0)[1]["prompt"]) == {0, 1, 2}


@pytest.mark.parametrize("name", SETTINGS)
def test_torch_walks_the_same_paths(name: str) -> None:
    setting = TreeMarkovChain(**SETTINGS[name])
    ours, torches = (gym.make_vec(ID, num_envs=33, backend=b, **SETTINGS[name]) for b in ("numpy", "torch"))
    rng = np.random.default_rng(0)
    (first, _), (other, _) = ours.reset(seed=1), torches.reset(seed=1)
    np.testing.assert_array_equal(first, other.numpy())
    for _ in range(4 * setting.L):
        actions = rng.integers(0, setting.M, 33)
        here, there = ours.step(actions), torches.step(torch.as_tensor(actions))
        for a, b in zip(here[:4], there[:4], strict=True):
            np.testing.assert_array_equal(a, b.numpy())


@pytest.mark.parametrize(
    ("field", "parameters"),
    [
        ("L", {"L": 8}),
        ("M", {"M": 6}),
        ("C", {"C": 2}),
        ("num_tasks", {"num_tasks": 1}),
        ("L", {"L": 1, "instance": 0}),
        ("M", {"M": 1, "instance": 0}),
        ("C", {"C": 3, "instance": 0}),
        ("num_tasks", {"num_tasks": 3, "instance": 0}),
        ("train_tasks", {"train_tasks": [2]}),
        ("train_tasks", {"train_tasks": []}),
        ("train_tasks", {"train_tasks": [0, 0]}),
        ("low_weight", {"low_weight": 0.0}),
        ("low_weight", {"low_weight": float("nan")}),
        ("pass_k", {"pass_k": 0}),
        ("pass_k", {"pass_k": 513}),
        ("num_questions", {"num_questions": -1}),
        ("instance", {"instance": "paper"}),
        ("instance", {"instance": -1}),
    ],
)
def test_refused_parameters_name_themselves(field: str, parameters: dict) -> None:
    with pytest.raises(ParameterError) as raised:
        TreeMarkovChain(**parameters)
    assert raised.value.field == field and field in str(raised.value)


def test_reference_probs_are_the_base_chain() -> None:
    setting = TreeMarkovChain()
    observations = np.array([[1, 0, 0, 0], [2, 0, 0, 0], [1, 2, 0, 0], [2, 1, 1, 0], [2, 1, 2, 0]], np.int8)
    high, low = 1 / 1.1, 0.1 / 1.1
    expected = [[high, low], [high, low], [low, high], [0.5, 0.5], [high, low]]
    np.testing.assert_allclose(setting.reference_probs(observations), expected)
