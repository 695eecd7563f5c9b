"""What networks cost: the time of one update of 64 episodes, forward and backward, over that of the transformer.

    python benchmarks/networks.py [--repeats 20]

Every network of the catalogue at its default sizes, on prompts of the lengths that training sees and of the full
length, and on responses of several tokens. Repeats are interleaved;
processor's seconds.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import gymnasium as gym
import numpy as np
import torch

import theorybench as tb
from theorybench.agents.policies.catalogue import NETWORKS, PolicyOptions
from theorybench.agents.policies.sizes import SHAPES
from theorybench.envs.core.registry import lookup

EPISODES = 64
BASE = "transformer"
FULL = {"trained": 0}
CASES: tuple[tuple[str, dict[str, int]], ...] = (
    ("KeyRecall", {}),
    ("KeyRecall", FULL),
    ("LastWrite", {}),
    ("LastWrite", FULL),
    ("TaggedBag", FULL),
    ("PointerChase", {}),
    ("Semiautomaton", {}),
)
#: The most that a network may cost, in transformers.
GOAL = 3.0


def update_of(name: str, env_id: str, parameters: dict[str, int]) -> tuple[Callable[[], None], int]:
    """Return what computes the gradient of the likelihood of 64 episodes, and the number of weights."""
    id = f"TheoryBench/{env_id}-v0"
    envs = gym.make_vec(id, num_envs=EPISODES, **parameters)
    envs.reset(seed=0)
    rng = np.random.default_rng(0)
    played = tb.rollout(envs, envs.unwrapped.reference_policy, episodes=EPISODES, rng=rng)
    softmax = PolicyOptions(policy=name).build(lookup(id).make_setting(parameters))
    encoded = softmax.encode(played.observations.reshape(-1, played.observations.shape[-1]))
    seen = torch.from_numpy(encoded.reshape(1, *played.taken.shape, -1))
    taken, actions = torch.from_numpy(played.taken), torch.from_numpy(played.actions)[..., None]
    weights = torch.from_numpy(softmax.start(0))[None].requires_grad_()

    def likelihood(parameters: torch.Tensor, observed: torch.Tensor) -> torch.Tensor:
        logs = torch.log_softmax(softmax.step_logits(parameters, observed), dim=-1)
        return (torch.gather(logs, -1, actions)[..., 0] * taken).sum()

    def update() -> None:
        weights.grad = None
        torch.func.vmap(likelihood)(weights, seen).sum().backward()

    return update, weights.numel()


def main() -> None:
    """Measure and print one block for each environment."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    names = [name for name in NETWORKS if name not in SHAPES]
    print(f"one update of {EPISODES} episodes, {options.repeats} repeats, interleaved")
    print(f"{'environment':28}{'network':12}{'weights':>9}{'ms':>9}{'to the transformer':>20}")
    worst = 0.0
    for env_id, parameters in CASES:
        updates = {name: update_of(name, env_id, parameters) for name in names}
        times: dict[str, list[float]] = {name: [] for name in names}
        for repeat in range(options.repeats + 2):
            for name, (update, _) in updates.items():
                start = time.process_time()
                update()
                if repeat >= 2:  # the first ones warm up
                    times[name].append(time.process_time() - start)
        place = env_id + (", full length" if parameters else "")
        for name, (_, weights) in updates.items():
            spent = statistics.median(times[name])
            ratio = spent / statistics.median(times[BASE])
            worst = max(worst, ratio)
            print(f"{place:28}{name:12}{weights:9,}{spent * 1e3:9.2f}{ratio:19.2f}x")
    print(f"goal, at most {GOAL:g}x: {'reached' if worst <= GOAL else f'missed, {worst:.2f}x'}")


if __name__ == "__main__":
    main()
