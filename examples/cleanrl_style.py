"""A plain training loop, CleanRL-style: REINFORCE in torch, every line in sight, scored exactly while it trains."""

import gymnasium as gym
import torch

import theorybench as tb

seed, num_envs, updates, learning_rate = 1, 256, 100, 0.02
envs = gym.make_vec("TheoryBench/TreeMarkovChain-v0", num_envs=num_envs, pass_k=4)
setting, oracle = envs.unwrapped.setting, envs.unwrapped.oracle
tokens, actions = envs.single_observation_space.shape[0], envs.single_action_space.n
torch.set_num_threads(1)  # small arrays are fastest on one thread
generator = torch.Generator().manual_seed(seed)

network = torch.nn.Sequential(
    torch.nn.Linear(tokens * (setting.num_symbols + 1), 64), torch.nn.Tanh(), torch.nn.Linear(64, actions)
)
optimizer = torch.optim.Adam(network.parameters(), lr=learning_rate)


def logits(observations):
    one_hot = torch.nn.functional.one_hot(torch.as_tensor(observations, dtype=torch.long), setting.num_symbols + 1)
    return network(one_hot.flatten(1).float())


class NetworkPolicy(tb.Policy):
    """What the oracle scores: any object with probs()."""

    @torch.no_grad()
    def probs(self, observations):
        return torch.softmax(logits(observations).double(), dim=1).numpy()


observations, info = envs.reset(seed=seed)
log_probs, returns = torch.zeros(num_envs), torch.zeros(num_envs)
for update in range(updates + 1):
    if update % 25 == 0:
        metrics = oracle.evaluate(NetworkPolicy(), ["objective", "pass@1", "entropy"])
        print(f"update {update:3d}  score {oracle.score(NetworkPolicy()):+.3f}  " + str(metrics))
    losses = []
    for _ in range(setting.horizon):
        distribution = torch.log_softmax(logits(observations), dim=1)
        chosen = torch.multinomial(distribution.exp(), 1, generator=generator)
        observations, rewards, terminated, truncated, info = envs.step(chosen[:, 0].numpy())
        losses.append(distribution.gather(1, chosen)[:, 0])
    rewards = torch.as_tensor(rewards, dtype=torch.float32)  # all episodes of the tree have the same length
    loss = -((rewards - rewards.mean()) * torch.stack(losses).sum(0)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
