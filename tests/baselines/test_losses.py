"""Each loss against its formula: by hand on a few numbers, and in expectation by listing every outcome."""

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch

from theorybench.baselines.astar_po import AStarPO
from theorybench.baselines.dpo_on_policy import DPOOnPolicy
from theorybench.baselines.rlvr import RLVR
from theorybench.envs.core.registry import load_module

samples = load_module(str(Path(__file__).parents[1] / "agents" / "trainers.py")).samples

REFERENCE = np.array([0.5, 0.3, 0.2])
REWARDS = np.array([1.0, 0.0, 1.0])
THETA = np.array([0.3, -0.2, -1.1])


def expected_gradient(loss, count, rewards=REWARDS, values=None):
    """Sum over all outcomes of `count` draws of P(outcome) times the gradient of the loss at THETA: float64 (3,)."""
    theta = torch.tensor(THETA, requires_grad=True)
    probs = torch.softmax(theta, 0).detach().numpy()
    total = torch.zeros((), dtype=torch.float64)
    for actions in itertools.product(range(3), repeat=count):
        chosen = np.array(actions)
        data = samples(chosen, rewards[chosen], np.log(REFERENCE[chosen]), None if values is None else values[:count])
        logs = torch.log_softmax(theta, 0)[torch.as_tensor(chosen)][:, None]
        data = data._replace(anchor=logs.detach())
        total = total + probs[chosen].prod() * loss(logs, data)
    total.backward()
    return theta.grad.numpy()


def gradient(objective):
    theta = torch.tensor(THETA, requires_grad=True)
    objective(torch.softmax(theta, 0)).backward()
    return theta.grad.numpy()


def rlvr(**options):
    return RLVR(episodes_per_update=options.pop("episodes"), **{"kl": 0.0, **options})


def divergence(probs):
    return (probs * torch.log(probs / torch.as_tensor(REFERENCE))).sum()


def success(probs):
    return probs @ torch.as_tensor(REWARDS)


# REINFORCE.


def test_rlvr_by_hand():
    logs = np.log([0.5, 0.25, 0.1, 0.4])
    rewards, reference = np.array([1.0, 0.0, 0.0, 1.0]), np.log([0.3, 0.3, 0.3, 0.3])
    data, given = samples([0, 1, 2, 0], rewards, reference, anchor=logs), torch.as_tensor(logs)[:, None]
    plain = rlvr(episodes=4, baseline="none").loss(given, data)
    assert float(plain) == pytest.approx(-(logs[0] + logs[3]) / 4)
    others = np.array([1 / 3, 2 / 3, 2 / 3, 1 / 3])
    assert float(rlvr(episodes=4).loss(given, data)) == pytest.approx(-((rewards - others) * logs).mean())
    grouped = np.array([1.0, -1.0, -1.0, 1.0])  # of two: the difference
    assert float(rlvr(episodes=4, group_size=2).loss(given, data)) == pytest.approx(-(grouped * logs).mean())
    regularised = rewards - 0.5 * (logs - reference)
    loss = rlvr(episodes=4, baseline="none", kl=0.5).loss(given, data)
    assert float(loss) == pytest.approx(-(regularised * logs).mean())


def test_rlvr_reject_easy_by_hand():
    logs = np.log([0.5, 0.25, 0.1, 0.4, 0.2, 0.6])
    rewards = np.array([1.0, 0.0, 0.0, 1.0, 0.0, 1.0])  # the second question is solved by a further sample
    data, given = samples([0, 1, 1, 0, 1, 0], rewards, 0 * logs), torch.as_tensor(logs)[:, None]
    loss = rlvr(episodes=6, baseline="none", reject_easy=2).loss(given, data)
    assert float(loss) == pytest.approx(-logs[0] / 2)
    assert float(rlvr(episodes=6, reject_easy=2).loss(given, data)) == 0  # both first samples are right


def test_longer_responses_add_up():
    logs = torch.log(torch.tensor([[0.5, 0.25], [0.1, 1.0]], dtype=torch.float64))
    data = samples([0, 1], np.array([1.0, 0.5]), np.zeros(2))._replace(reference=torch.zeros(2, 2, dtype=torch.float64))
    loss = rlvr(episodes=2, baseline="none").loss(logs, data)
    assert float(loss) == pytest.approx(-(np.log(0.125) + 0.5 * np.log(0.1)) / 2)


@pytest.mark.parametrize("baseline", ["none", "leave-one-out"])
@pytest.mark.parametrize(("episodes", "group_size"), [(3, 1), (4, 2), (3, 3)])
@pytest.mark.parametrize("kl", [0.0, 0.7])
def test_rlvr_climbs_reward_minus_divergence(baseline, episodes, group_size, kl):
    agent = rlvr(episodes=episodes, group_size=group_size, baseline=baseline, kl=kl)
    wanted = gradient(lambda probs: success(probs) - kl * divergence(probs))
    np.testing.assert_allclose(expected_gradient(agent.loss, episodes), -wanted, atol=1e-14)


@pytest.mark.parametrize("baseline", ["none", "leave-one-out"])
@pytest.mark.parametrize(("n", "group_size"), [(1, 1), (2, 1), (5, 1), (3, 2)])
def test_reject_easy_climbs_pass_at_n_plus_one(baseline, n, group_size):
    """E[(1-M)^n grad M] = grad pass@(n+1) / (n+1), with M the probability of solving the question."""
    blocks = 2 if n + group_size < 4 else 1
    agent = rlvr(episodes=blocks * (n + group_size), group_size=group_size, baseline=baseline, reject_easy=n)
    wanted = gradient(lambda probs: (1 - (1 - success(probs)) ** (n + 1)) / (n + 1))
    found = expected_gradient(agent.loss, agent.episodes_per_update)
    np.testing.assert_allclose(found, -wanted, atol=1e-14)


# A*-PO.


def test_astar_by_hand():
    logs, reference = np.log([0.5, 0.25]), np.log([0.25, 0.5])
    data = samples([0, 1], np.array([1.0, 0.0]), reference, np.array([0.6, 0.2]))
    loss = AStarPO(beta_2=0.3).loss(torch.as_tensor(logs)[:, None], data)
    wanted = ((0.3 * np.log(2) + 0.6 - 1) ** 2 + (0.3 * np.log(0.5) + 0.2) ** 2) / 2
    assert float(loss) == pytest.approx(wanted)


@pytest.mark.parametrize("value", [0.0, 0.3, 5.0])
def test_astar_climbs_the_regularised_objective_whatever_the_value(value):
    """On-policy, the expected gradient is -2 beta_2 grad (E r - beta_2 KL), for every V-hat."""
    beta = 0.4
    wanted = gradient(lambda probs: success(probs) - beta * divergence(probs))
    found = expected_gradient(AStarPO(beta_2=beta).loss, 2, values=np.full(2, value))
    np.testing.assert_allclose(found, -2 * beta * wanted, atol=1e-13)


def test_astar_loss_is_zero_at_the_optimum():
    beta = 0.5
    weights = REFERENCE * np.exp(REWARDS / beta)
    optimum, value = weights / weights.sum(), beta * np.log(weights.sum())
    data = samples([0, 1, 2], REWARDS, np.log(REFERENCE), np.full(3, value))
    assert float(AStarPO(beta_2=beta).loss(torch.as_tensor(np.log(optimum))[:, None], data)) < 1e-30


# DPO.


def test_dpo_is_stable_at_large_margins():
    logs = torch.tensor([[[0.0, -2000.0]], [[-2000.0, 0.0]]], dtype=torch.float64, requires_grad=True)
    data = samples(np.zeros((2, 2), int), np.array([0.5, 0.5]), np.zeros((2, 2)))
    loss = DPOOnPolicy(beta=1.0).loss(logs, data)
    assert float(loss.detach()) == pytest.approx(1000.0)
    loss.backward()
    assert torch.isfinite(logs.grad).all()
