"""The tabular truth and a transformer on the same instance: `python examples/table_and_transformer.py [PICTURE.png]`.

A table and a language model learn the same tree by the same algorithm. Whatever is asked of them has an exact answer:
here, how likely every chain of thought is, before and after.
"""

import itertools
import sys

import gymnasium as gym
import numpy as np

import theorybench as tb
from theorybench.agents import train

ENV, BUDGET = "TheoryBench/TreeMarkovChain-v0", 1024
METRICS = ("pass@1", "pass@8", "entropy", "kl")


def chains(setting, policy, prompt):
    """Return the probability of every sequence of actions after a prompt: the product along its prefixes."""
    chains = np.array(list(itertools.product(range(setting.num_actions), repeat=setting.horizon)))
    observations = np.zeros((len(chains), setting.prompt_length + setting.response_length), setting.observation_dtype)
    observations[:, : setting.prompt_length] = setting.prompt_tokens([prompt])
    probability = np.ones(len(chains))
    for step, actions in enumerate(chains.T):
        probability *= policy.probs(observations)[np.arange(len(chains)), actions]
        observations[:, setting.prompt_length + step] = actions + 1
    return probability


def main(picture: str | None) -> None:
    """Train, compare, and draw if there is a path."""
    env = gym.make(ENV).unwrapped
    setting, oracle = env.setting, env.oracle
    policies = {"base model": oracle.reference_policy, "optimum": oracle.optimal_policy}
    for name, policy in (("table", "prefix"), ("transformer", "llama")):
        agent = tb.make_agent("grpo", policy=policy)
        policies[name] = train(agent, ENV, {}, [0], BUDGET)[0].policy
    probabilities = {name: chains(setting, policy, prompt=0) for name, policy in policies.items()}
    head = "".join(f"{metric:>9}" for metric in ("score", *METRICS))
    print(f"{'':12}{head}   the likeliest chain, and the sum")
    for name, policy in policies.items():
        found, own = oracle.evaluate(policy), probabilities[name]
        numbers = "".join(f"{value:9.3f}" for value in (oracle.score(policy), *(found[metric] for metric in METRICS)))
        print(f"{name:12}{numbers}   {own.max():.3f} {own.sum():.3f}")
    apart = np.abs(probabilities["table"] - probabilities["transformer"]).sum() / 2
    print(f"total variation between table and transformer: {apart:.4f}")
    if picture:
        draw(probabilities, picture)


def draw(probabilities, path):
    """Draw the probability of every chain under every policy."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 2.6), layout="constrained", dpi=110)
    panels = figure.subplots(1, len(probabilities), sharey=True)
    for axes, (name, own) in zip(panels, probabilities.items(), strict=True):
        axes.bar(np.arange(len(own)), own, color="#3b6fb6")
        axes.set_title(name)
        axes.set_xlabel("chain of thought")
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
