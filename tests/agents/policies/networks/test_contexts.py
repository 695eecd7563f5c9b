"""Networks that count back from the answer: padding, and responses that are read once."""

from pathlib import Path

import numpy as np
import pytest
import torch

from theorybench.agents.policies.catalogue import PolicyOptions
from theorybench.envs.core.environments.language import begin
from theorybench.envs.core.registry import load_module, lookup

SHARED = load_module(str(Path(__file__).parent / "kit.py"))
SIZES = {"looped": {"width": 8, "heads": 2, "loops": 3, "layers_before": 1}, "kgram": {"order": 2}, "bag": {"width": 8}}
contexts = pytest.mark.parametrize("name", SIZES)


def built(name, setting):
    softmax = PolicyOptions(policy=name, **SIZES[name]).build(setting)
    scales = np.repeat([np.sqrt(entry.inputs) for entry in softmax.network.entries.values()], softmax.network.counts)
    return softmax, scales * np.random.default_rng(0).normal(size=scales.shape)


@contexts
@pytest.mark.parametrize(("env_id", "parameters"), SHARED.CASES)
def test_a_response_that_is_read_once_gives_the_answers_of_all_its_steps(name, env_id, parameters):
    setting, played = SHARED.KIT.play(env_id, 30, **parameters)
    (softmax, weights), taken = built(name, setting), played.taken
    encoded = softmax.encode(played.observations.reshape(-1, played.observations.shape[2]))
    encoded = torch.as_tensor(encoded.reshape(*taken.shape, -1)) * torch.as_tensor(taken)[..., None]
    weights = torch.as_tensor(weights)
    one_by_one, at_once = (read(weights, encoded)[taken] for read in (softmax.logits, softmax.step_logits))
    np.testing.assert_allclose(at_once, one_by_one, atol=1e-10)
    if softmax.mapped:
        both = torch.func.vmap(softmax.step_logits)(torch.stack([weights, 2 * weights]), torch.stack([encoded] * 2))
        np.testing.assert_allclose(both[0][taken], one_by_one, atol=1e-10)


@contexts
def test_it_does_not_matter_where_the_padding_of_a_prompt_stands(name):
    setting = lookup(SHARED.MACHINE).make_setting({"N": 3, "T": 6})
    softmax, weights = built(name, setting)
    policy, seen = softmax.snapshot(weights), begin(setting, np.arange(20), stage=3).observe()
    length, tokens = setting.prompt_length, np.count_nonzero(seen[0, : setting.prompt_length])
    assert seen[:, :tokens].all()
    assert 2 < tokens < length
    front, split = (np.zeros_like(seen) for _ in range(2))
    front[:, length - tokens : length] = seen[:, :tokens]
    split[:, :2], split[:, length - tokens + 2 : length] = seen[:, :2], seen[:, 2:tokens]
    for other in (front, split):
        np.testing.assert_allclose(policy.probs(other), policy.probs(seen), atol=1e-12)
        for before, after in zip(policy.attention(seen), policy.attention(other), strict=True):
            assert before.weights.shape == after.weights.shape
            for old, old_tokens, new, new_tokens in zip(before.weights, seen, after.weights, other, strict=True):
                old_places, new_places = (np.flatnonzero(row[:length]) for row in (old_tokens, new_tokens))
                np.testing.assert_allclose(new[:, new_places], old[:, old_places], atol=1e-12)
                assert not np.delete(new, new_places, axis=1).any()
