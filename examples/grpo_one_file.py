"""GRPO in one file, CleanRL-style: every line in sight, scored exactly while it trains.

python examples/grpo_one_file.py --beta 0.1 --no-scale-rewards
"""

import argparse
import dataclasses
import time
from typing import NamedTuple

import gymnasium as gym
import numpy as np
import torch

import theorybench as tb


@dataclasses.dataclass
class Args:
    env_id: str = "TheoryBench/TreeMarkovChain-v0"
    """a setting that rewards"""
    seed: int = 1
    """of the environments, the network and the actions"""
    updates: int = 100
    """batches of episodes"""
    num_groups: int = 16
    """prompts of a batch"""
    group_size: int = 16
    """G: episodes of each prompt, whose rewards are compared"""
    num_iterations: int = 2
    """gradient steps on each batch"""
    learning_rate: float = 0.01
    """step size of Adam"""
    max_gradient_norm: float = 1.0
    """the gradient is clipped to this norm"""
    epsilon: float = 0.2
    """clip range of ratios below 1"""
    epsilon_high: float = 0.2
    """clip range of ratios above 1"""
    beta: float = 0.0
    """weight of the KL estimate to the base model"""
    scale_rewards: bool = True
    """whether advantages are divided by the deviation of their group; not so in Dr. GRPO"""
    hidden_units: int = 64
    """width of the network"""
    evaluate_every: int = 25
    """updates between exact scores"""


class Batch(NamedTuple):
    """N = num_groups * G episodes of up to T steps, groups side by side; zeros after the end of an episode."""

    observations: np.ndarray  # int (N, T, tokens)
    actions: torch.Tensor  # int64 (N, T)
    sampled: torch.Tensor  # float64 (N, T), log-probabilities when the actions were drawn
    reference: torch.Tensor  # float64 (N, T), the same under the base model
    taken: torch.Tensor  # float64 (N, T), 1 for steps of the episode
    rewards: torch.Tensor  # float64 (N,)


class Network(torch.nn.Module):
    """ln pi(a | o) = ln pi_ref(a | o) + f(o)_a - ln Z(o); f is 0 at the start, so training begins at the base model."""

    def __init__(self, setting, hidden_units):
        super().__init__()
        self.setting, self.symbols = setting, setting.num_symbols + 1
        tokens = setting.prompt_length + setting.response_length
        self.hidden = torch.nn.Linear(tokens * self.symbols, hidden_units)
        self.last = torch.nn.Linear(hidden_units, setting.num_actions)
        torch.nn.init.zeros_(self.last.weight)
        torch.nn.init.zeros_(self.last.bias)
        self.double()

    def forward(self, observations):
        """Return log-probabilities: int (n, tokens) -> (n, num_actions)."""
        tokens = torch.as_tensor(observations, dtype=torch.long)
        one_hot = torch.nn.functional.one_hot(tokens, self.symbols).flatten(1).double()
        added = self.last(torch.tanh(self.hidden(one_hot)))
        return torch.log_softmax(reference_log_probs(self.setting, observations) + added, dim=1)


class NetworkPolicy(tb.Policy):
    """What the oracle scores: any object with probs()."""

    def __init__(self, network):
        self.network = network

    @torch.no_grad()
    def probs(self, observations):
        return self.network(observations).exp().numpy()


def reference_log_probs(setting, observations):
    """Return ln pi_ref, (n, num_actions); an action that the base model never takes stays at e^-690."""
    return torch.as_tensor(np.log(np.maximum(setting.reference_probs(observations), 1e-300)))


def collect(envs, network, args):
    """Roll out one batch: G episodes of each of `num_groups` prompts."""
    setting = envs.unwrapped.setting
    _, info = envs.reset()  # draws prompts; an episode that is not begun costs nothing
    prompts = np.repeat(info["prompt"][:: args.group_size], args.group_size)
    observations, info = envs.reset(options={"prompt": prompts})
    running, rewards, steps = np.ones(envs.num_envs), np.zeros(envs.num_envs), []
    for _ in range(setting.horizon):
        with torch.no_grad():
            logs = network(observations)
        actions = torch.multinomial(logs.exp(), 1)
        reference = reference_log_probs(setting, observations).gather(1, actions)
        taken = torch.as_tensor(running)
        steps.append((observations, actions[:, 0], logs.gather(1, actions)[:, 0], reference[:, 0], taken))
        observations, gained, terminated, _, info = envs.step(actions[:, 0].numpy())
        rewards += running * gained  # an environment whose episode is over begins another, which does not count
        running = running * ~terminated
    seen, *others = zip(*steps, strict=True)
    actions, sampled, reference, taken = (torch.stack(each, dim=1) for each in others)
    return Batch(np.stack(seen, axis=1), actions, sampled, reference, taken, torch.as_tensor(rewards))


def loss_of(network, batch, args):
    """GRPO's loss: the clipped surrogate of group advantages, minus the KL estimate k3 (arXiv 2402.03300)."""
    n, horizon, tokens = batch.observations.shape
    log_probs = network(batch.observations.reshape(-1, tokens)).reshape(n, horizon, -1)
    log_probs = log_probs.gather(2, batch.actions[:, :, None])[:, :, 0]

    groups = batch.rewards.reshape(-1, args.group_size)
    advantages = groups - groups.mean(1, keepdim=True)
    if args.scale_rewards:
        advantages = advantages / (groups.std(1, keepdim=True) + 1e-4)
    advantages = advantages.reshape(-1, 1)

    ratio = torch.exp(log_probs - batch.sampled)
    clipped = torch.clamp(ratio, 1 - args.epsilon, 1 + args.epsilon_high)
    away = batch.reference - log_probs
    objective = torch.minimum(ratio * advantages, clipped * advantages) - args.beta * (torch.exp(away) - 1 - away)
    return -((objective * batch.taken).sum(1) / batch.taken.sum(1)).mean()


def main(args):
    """Train, and print what the answer key says on the way."""
    torch.set_num_threads(1)  # small arrays are fastest on one thread
    torch.manual_seed(args.seed)
    envs = gym.make_vec(args.env_id, num_envs=args.num_groups * args.group_size)
    setting, oracle = envs.unwrapped.setting, envs.unwrapped.oracle
    network = Network(setting, args.hidden_units)
    optimizer = torch.optim.Adam(network.parameters(), lr=args.learning_rate)
    envs.reset(seed=args.seed)
    began = time.perf_counter()
    for update in range(args.updates + 1):
        if update % args.evaluate_every == 0:
            exact = oracle.evaluate(NetworkPolicy(network), ["objective", "kl"])
            score = oracle.score(NetworkPolicy(network))
            print(f"update {update:3}  score {score:+.3f}  objective {exact['objective']:.4f}  kl {exact['kl']:.3f}")
        batch = collect(envs, network, args)
        for _ in range(args.num_iterations):
            loss = loss_of(network, batch, args)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), args.max_gradient_norm)
            optimizer.step()
    print(f"{(args.updates + 1) * envs.num_envs:,} episodes, {time.perf_counter() - began:.0f} seconds")


def parse():
    """Read the hyper-parameters from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    for field in dataclasses.fields(Args):
        kind = {"action": argparse.BooleanOptionalAction} if field.type is bool else {"type": field.type}
        parser.add_argument("--" + field.name.replace("_", "-"), default=field.default, **kind)
    return Args(**vars(parser.parse_args()))


if __name__ == "__main__":
    main(parse())
