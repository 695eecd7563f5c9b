"""The transformer: what it sees, an independent forward pass, responses that are read once, and that it learns."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from theorybench.agents import make_agent
from theorybench.agents.api.harness import train
from theorybench.agents.policies.catalogue import PolicyOptions
from theorybench.agents.policies.networks.transformer import Transformer
from theorybench.envs.core.errors import ParameterError
from theorybench.envs.core.registry import load_module, lookup

NETWORKS = load_module(str(Path(__file__).parent / "test_networks.py"))
CASES, MACHINE, observed, moved = NETWORKS.CASES, NETWORKS.MACHINE, NETWORKS.observed, NETWORKS.moved


def by_hand(network, weights, seen):
    """Compute one answer from the visible tokens alone, token by token, head by head."""
    own, at = {}, 0
    for name, entry in network.entries.items():
        size = math.prod(entry.shape)
        own[name], at = weights[at : at + size].reshape(entry.shape) / entry.inputs, at + size
    start, width = len(seen) - 2 - network.window, own["last"].shape[0]
    answer = start + int(seen[-1])
    places = [place for place in range(answer + 1) if seen[place]]
    rows = {p: own["token"][int(seen[p])] + (own["place"][p - start] if p >= start else 0.0) for p in places}
    size = width // network.heads

    def norm(row):
        return row / np.sqrt(np.mean(row**2) + 1e-6)

    for layer in range(network.layers):
        block = {name.split()[0]: matrix for name, matrix in own.items() if name.endswith(f" {layer}")}
        after = {}
        for i in places:
            mixed = np.zeros(width)
            for head in range(network.heads):
                part = slice(head * size, (head + 1) * size)
                query = (norm(rows[i]) @ block["query"])[part]
                back = [j for j in places if j <= i]
                scores = [
                    query @ ((norm(rows[j]) @ block["key"])[part] + block["distance"][i - j][part]) / size
                    + block["lean"][i - j][head]
                    for j in back
                ]
                weight = np.exp(np.array(scores) - max(scores))
                values = np.array([(norm(rows[j]) @ block["value"])[part] for j in back])
                mixed[part] = weight / weight.sum() @ values
            row = rows[i] + mixed @ block["join"]
            after[i] = row + np.maximum(norm(row) @ block["up"], 0) @ block["down"]
        rows = after
    return norm(rows[answer]) @ own["last"]


@pytest.mark.parametrize(("env_id", "parameters"), CASES)
@pytest.mark.parametrize("sizes", [(8, 1, 2), (8, 3, 4), (6, 2, 1)])
def test_the_network_is_what_it_says_token_by_token(env_id, parameters, sizes):
    setting, seen = observed(env_id, parameters, episodes=12)
    network = Transformer(setting, 5, *sizes)
    weights = np.random.default_rng(0).normal(size=network.start(0).shape) * 3
    rows = network.see(seen)[:8]
    ours = network(torch.as_tensor(weights), torch.as_tensor(rows)).numpy()
    np.testing.assert_allclose(ours, [by_hand(network, weights, row) for row in rows], atol=1e-10)


@pytest.mark.parametrize(("env_id", "parameters"), CASES)
def test_a_response_that_is_read_once_gives_the_answers_of_all_its_steps(env_id, parameters):
    setting, played = NETWORKS.KIT.play(env_id, 30, **parameters)
    softmax, taken = PolicyOptions(policy="transformer", width=12, layers=2, heads=3).build(setting), played.taken
    encoded = softmax.encode(played.observations.reshape(-1, played.observations.shape[2]))
    encoded = torch.as_tensor(encoded.reshape(*taken.shape, -1)) * torch.as_tensor(taken)[..., None]
    weights = torch.as_tensor(moved(softmax))
    one_by_one, at_once = (read(weights, encoded)[taken] for read in (softmax.logits, softmax.step_logits))
    np.testing.assert_allclose(at_once, one_by_one, atol=1e-10)
    stacked = torch.func.vmap(softmax.step_logits)(torch.stack([weights, 2 * weights]), torch.stack([encoded, encoded]))
    np.testing.assert_allclose(stacked[0][taken], one_by_one, atol=1e-10)


def test_what_stands_behind_the_answer_cannot_change_it():
    setting, seen = observed(MACHINE, {"N": 3, "T": 5})
    network = Transformer(setting, 3, 8, 2, 2)
    weights = torch.as_tensor(np.random.default_rng(0).normal(size=network.start(0).shape))
    rows = network.see(seen)
    behind = np.arange(network.places) > network.prompt_length + rows[:, -1:]
    assert behind.any()
    other = rows.copy()
    other[:, :-1][behind] = np.random.default_rng(1).integers(1, setting.num_symbols, size=behind.sum())
    assert network(weights, torch.as_tensor(rows[:0])).shape == (0, 3)
    before, after = (network(weights, torch.as_tensor(part)) for part in (rows, other))
    np.testing.assert_array_equal(before, after)
    ahead = other.copy()  # and what stands before it does
    ahead[:, 0] = 1 + ahead[:, 0] % setting.N
    assert (network(weights, torch.as_tensor(ahead)) != after).all()


def test_a_token_further_along_is_read_as_it_was_nearer_to_the_start():
    """Until vectors of places are learnt, tokens are read alike wherever they stand."""
    setting = lookup(MACHINE).make_setting({"N": 3, "T": 6})
    network = Transformer(setting, 3, 16, 2, 2)
    weights, first = np.random.default_rng(0).normal(size=network.start(0).shape), network.counts[0]

    def answers():
        rows = np.zeros((2, network.places + 1))  # a mark, and two tokens before it, or two places further along
        rows[0, 4:7], rows[1, 6:9] = [1, 2, 3], [1, 2, 3]
        rows[:, -1] = -1, 1
        return network(torch.as_tensor(weights), torch.as_tensor(rows)).numpy()

    assert network.prompt_length == 7
    assert np.abs(np.diff(answers(), axis=0)).min() > 1e-3
    weights[first : first + network.counts[1]] = 0
    np.testing.assert_allclose(*answers(), atol=1e-12)


def test_long_responses_are_read_by_their_last_tokens():
    setting = lookup("TheoryBench/MetastableChain-v0").make_setting({})
    assert setting.response_length > 32
    network = Transformer(setting, 3, 8, 1, 2)
    rng = np.random.default_rng(0)
    long = np.zeros((1, setting.prompt_length + setting.response_length), setting.observation_dtype)
    long[0, 0], long[0, 1:51] = 1, rng.integers(1, setting.num_symbols, size=50)
    other = long.copy()
    other[0, 1:19] = 1 + other[0, 1:19] % setting.num_symbols
    np.testing.assert_array_equal(network.see(long), network.see(other))
    other[0, 19] = 1 + other[0, 19] % setting.num_symbols
    assert (network.see(long) != network.see(other)).sum() == 1
    np.testing.assert_array_equal(network.see(long)[0, 2:34], long[0, 19:51])


def test_sizes_must_fit():
    with pytest.raises(ParameterError, match="a multiple of heads = 3"):
        PolicyOptions(policy="transformer", width=32, heads=3).build(lookup("Toy/Copy-v0").make_setting({}))
    with pytest.raises(ParameterError, match="heads"):
        make_agent("rlvr", policy="transformer", heads=0)


def test_it_learns_a_machine_of_two_letters():
    parameters = {"N": 2, "m": 2, "T": 2}
    (outcome,) = train(make_agent("rlvr[policy=transformer]"), MACHINE, parameters | {"T": 1}, [0], 6_000)
    entry = lookup(MACHINE)
    assert entry.oracle(entry.make_setting(parameters | {"T": 1})).score(outcome.policy) > 0.9
