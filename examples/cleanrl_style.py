"""A plain training loop, CleanRL-style: REINFORCE in torch, every line in sight, scored exactly while it trains."""

import dataclasses
import time

import gymnasium as gym
import torch

import theorybench as tb


@dataclasses.dataclass
class Args:
    env_id: str = "TheoryBench/TreeMarkovChain-v0"
    """a setting that rewards, whose episodes are of one length"""
    pass_k: int = 4
    """tries of which one has to be right"""
    seed: int = 1
    """of the environments, the network and the actions"""
    num_envs: int = 256
    """episodes of an update"""
    updates: int = 100
    """gradient steps"""
    learning_rate: float = 0.02
    """of Adam"""


args = Args()
envs = gym.make_vec(args.env_id, num_envs=args.num_envs, pass_k=args.pass_k)
setting, oracle = envs.unwrapped.setting, envs.unwrapped.oracle
tokens, actions = envs.single_observation_space.shape[0], envs.single_action_space.n
torch.set_num_threads(1)  # small arrays are fastest on one thread
torch.manual_seed(args.seed)
network = torch.nn.Sequential(
    torch.nn.Linear(tokens * (setting.num_symbols + 1), 64), torch.nn.Tanh(), torch.nn.Linear(64, actions)
)
optimizer = torch.optim.Adam(network.parameters(), lr=args.learning_rate)


def logits(observations):
    one_hot = torch.nn.functional.one_hot(torch.as_tensor(observations, dtype=torch.long), setting.num_symbols + 1)
    return network(one_hot.flatten(1).float())


class NetworkPolicy(tb.Policy):
    """What the oracle scores: any object with probs()."""

    @torch.no_grad()
    def probs(self, observations):
        return torch.softmax(logits(observations).double(), dim=1).numpy()


for name, policy in (("base model", oracle.reference_policy), ("optimum", oracle.optimal_policy)):
    print(f"{name:10}  objective {oracle.evaluate(policy)['objective']:.4f}  score {oracle.score(policy):+.3f}")
observations, info = envs.reset(seed=args.seed)
stepping = 0.0  # seconds, the answer key left out
for update in range(args.updates + 1):
    if update % 25 == 0:
        exact = oracle.evaluate(NetworkPolicy(), ["objective", "pass@1", "entropy"])
        line = f"objective {exact['objective']:.4f}  score {oracle.score(NetworkPolicy()):+.3f}"
        print(f"update {update:3}  {line}  pass@1 {exact['pass@1']:.3f}  entropy {exact['entropy']:.4f}")
    began, losses = time.perf_counter(), []
    for _ in range(setting.horizon):
        distribution = torch.log_softmax(logits(observations), dim=1)
        chosen = torch.multinomial(distribution.exp(), 1)
        observations, rewards, terminated, truncated, info = envs.step(chosen[:, 0].numpy())
        losses.append(distribution.gather(1, chosen)[:, 0])
    rewards = torch.as_tensor(rewards, dtype=torch.float32)  # all episodes of the tree have the same length
    loss = -((rewards - rewards.mean()) * torch.stack(losses).sum(0)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    stepping += time.perf_counter() - began
print(f"{(args.updates + 1) * args.num_envs * setting.horizon / stepping:,.0f} steps a second")
