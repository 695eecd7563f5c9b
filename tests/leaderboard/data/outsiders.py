"""Agents of a user: learners of this package under other names, and policies of their own; named from tests by file."""

import dataclasses
import time

import numpy as np
import torch

import theorybench as tb
from theorybench.baselines.rlvr import RLVR


class Learner(RLVR):
    """Trains seeds together, and returns tables."""


class Network(tb.Agent):
    """Learns nothing; its policy is a network in single precision that reads every token, and asks a reward model."""

    num_envs = 8

    def train(self, envs, budget, *, seed, log):
        setting = envs.unwrapped.setting
        rng = np.random.default_rng(seed)
        envs.reset(seed=seed)
        for part in (1, 2):
            while budget.spent < part * budget.total // 2:
                envs.step(rng.integers(setting.num_actions, size=envs.num_envs))
            policy = Softmax(setting.prompt_length + setting.response_length, setting.num_actions, seed + part)
            log(policy, part=part, odd=float("nan"))
        return policy


class Softmax(tb.Policy):
    queries_per_response = 2.5

    def __init__(self, tokens, actions, seed):
        generator = torch.Generator().manual_seed(seed)
        self.weights = torch.randn(tokens, actions, generator=generator) / 3

    def probs(self, observations):
        return torch.softmax(torch.as_tensor(observations, dtype=torch.float32) @ self.weights, dim=1)


class Reading(tb.Agent):
    """Reads a view that knows the secret of Parity and says nothing; `how` it gets at it."""

    feedback = "none"

    def __init__(self, how="own"):
        self.how = how

    def train(self, envs, budget, *, seed, log):
        setting = envs.unwrapped.setting
        if self.how == "none":
            return Alternating(setting)
        if self.how == "built":
            symbols = setting.prompt_symbols
            sizes = setting.num_actions, setting.prompt_length, setting.response_length
            view = tb.View("local", *sizes, symbols.start, len(symbols), dataclasses.asdict(setting.local))
        else:
            view = tb.View.of(setting, "local")
        table = np.full((view.rows, setting.num_actions), 1 / setting.num_actions)
        return tb.TablePolicy(view, table) if self.how != "own" else Looked(view, table)


class Looked(tb.Policy):
    def __init__(self, view, table):
        self.view_of_its_own, self.rows = view, table

    def probs(self, observations):
        return self.rows[self.view_of_its_own.index(observations)]


class ByPosition(tb.Agent):
    """Returns a policy that says what it depends on."""

    feedback = "none"

    def train(self, envs, budget, *, seed, log):
        return Alternating(envs.unwrapped.setting)


class Alternating(tb.Policy):
    depends_on = "position"

    def __init__(self, setting):
        self.given, self.actions = setting.prompt_length, setting.num_actions

    def probs(self, observations):
        turn = np.count_nonzero(observations[:, self.given :], axis=1) % 2
        rows = np.exp(np.arange(self.actions) * np.where(turn, 1.0, -1.0)[:, None])
        return rows / rows.sum(axis=1, keepdims=True)


class Stalls(tb.Agent):
    """Shows a policy at half of its budget, and does nothing more."""

    num_envs = 8

    def train(self, envs, budget, *, seed, log):
        envs.reset(seed=seed)
        while budget.spent < budget.total // 2:
            envs.step(np.zeros(envs.num_envs, int))
        log(envs.unwrapped.reference_policy)
        time.sleep(600)
