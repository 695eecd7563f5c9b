"""Networks on some settings, with weights that were moved, and their arrays by name."""

import math
from pathlib import Path

import numpy as np

from theorybench.agents.policies.catalogue import NETWORKS, PolicyOptions
from theorybench.agents.policies.sizes import SHAPES
from theorybench.envs.core.registry import load_module

KIT = load_module(str(Path(__file__).parents[2] / "trainers.py"))
BANDIT = "TheoryBench/PreferenceBandit-v0"
MACHINE = "TheoryBench/Semiautomaton-v0"
CASES = [
    ("Toy/Copy-v0", {}),
    ("Toy/Duel-v0", {}),
    (BANDIT, {"dimension": 3, "theta_init": 2.0}),
    ("TheoryBench/TreeMarkovChain-v0", {}),
    ("TheoryBench/ReasoningTree-v0", {}),
    ("TheoryBench/RelativeBudget-v0", {}),
    ("TheoryBench/Countdown-v0", {}),
    ("TheoryBench/KFoldComposition-v0", {"N": 4, "k": 2}),
    (MACHINE, {"N": 3, "T": 4}),
]
#: Language models have tests of their own.
OURS = [name for name in NETWORKS if name not in SHAPES]
TOKENS = [name for name in OURS if name != "mlp"]  # networks that read tokens one by one
SMALL = {
    "mlp": {"hidden_units": 8},
    **{name: {"width": 8, "layers": 2, "heads": 2} for name in TOKENS},
    "looped": {"width": 8, "heads": 2, "loops": 2, "layers_before": 1},
}


def observed(env_id, parameters, episodes=100):
    setting, played = KIT.play(env_id, episodes, **parameters)
    return setting, played.observations[played.taken]


def small(name, setting, **options):
    return PolicyOptions(policy=name, **{**SMALL.get(name, {}), **options}).build(setting)


def moved(softmax, seed=1):
    return 4 * np.random.default_rng(seed).normal(size=softmax.start(0).shape)


def arrays(network, weights):
    """Return the arrays of a network over tokens by name, each divided by the inputs that it averages."""
    own, at = {}, 0
    for name, entry in network.entries.items():
        size = math.prod(entry.shape)
        own[name], at = weights[at : at + size].reshape(entry.shape) / entry.inputs, at + size
    assert at == len(weights)
    return own


def scaled(policy_class, setting, seed=0, **sizes):
    """Return a policy whose weights are random, none of them 0, at the scale at which a network starts."""
    network = policy_class.network_class(setting, setting.num_actions, **sizes)
    scales = np.repeat([np.sqrt(entry.inputs) for entry in network.entries.values()], network.counts)
    return policy_class(setting, "uniform", sizes, scales * np.random.default_rng(seed).normal(size=scales.shape))


def tokens_of(network, row):
    """Return the tokens of an observation that a network reads: of the prompt, without padding, and the response."""
    prompt, response = row[: network.prompt_length], row[network.prompt_length :]
    response = response[response != 0]
    return prompt[prompt != 0].tolist(), response[max(len(response) - network.window, 0) :].tolist()


def norm(row):
    return row / np.sqrt(np.mean(row**2) + 1e-6)


def heads_of(width, heads):
    """Return the part of a token's numbers that each head has."""
    size = width // heads
    return [slice(head * size, (head + 1) * size) for head in range(heads)]
