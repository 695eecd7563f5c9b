"""Walks through prefixes: all of them weigh as samples do on average, and what is declared is checked."""

import numpy as np
import pytest

import theorybench as tb
from theorybench.envs.core.errors import PolicyError
from theorybench.envs.core.finite.walks import PrefixWalk, ask, blocks, declared, means


def probs(observations):
    """Depend on the prompt and on all that was said."""
    return np.array([np.random.default_rng([int(t) for t in o]).dirichlet(np.ones(3)) for o in observations])


def walked(prompts, rng=None, going=None, steps=3):
    """Sum, over prompts, a number that depends on prompt, response and last action."""
    walk = PrefixWalk(probs, lambda p, r: np.column_stack([p + 1, r + 1, 0 * p + r.shape[1]]), prompts, rng)
    total = np.zeros(prompts)
    for rows in walk.rows(steps, going):
        total += walk.total(rows @ np.array([0.5, 1.0, 2.0]) * (1 + walk.prompt + walk.response.sum(axis=1)))
    return walk, total


@pytest.mark.parametrize("going", [None, 2])
def test_all_prefixes_are_the_mean_of_samples(going):
    walk, exact = walked(1, going=going)
    assert len(walk.prompt) == (going or 3) ** 2
    left = walk.weight.sum()
    assert left == pytest.approx(1) if going is None else left < 1
    samples = np.concatenate([walked(1, np.random.default_rng(seed), going)[1] for seed in range(400)])
    assert abs(samples.mean() - exact[0]) < 4 * samples.std() / 20


def test_prompts_do_not_mix():
    _, both = walked(2)
    assert both[0] == pytest.approx(walked(1)[1][0], abs=1e-14)


def test_standard_errors_stand_beside_samples_alone():
    columns = {"a": np.array([0.0, 1.0]), "b": np.array([2.0, 2.0]), "c": np.array([np.inf, 0.0])}
    assert means(columns) == {"a": 0.5, "b": 2.0, "c": np.inf}
    assert means(columns, ["a"]) == {"a": 0.5, "b": 2.0, "c": np.inf, "a_se": 0.5}
    assert set(means(columns, True)) == {"a", "b", "c", "a_se", "b_se"}


def test_blocks_cover_everything_once():
    assert [range(10)[block] for block in blocks(10, 4)] == [range(4), range(4, 8), range(8, 10)]
    assert len(list(blocks(3, 0))) == 3 and list(blocks(0, 4)) == []


class Peeks(tb.Policy):
    depends_on = "position"

    def probs(self, observations):
        return np.eye(2)[np.asarray(observations)[:, 0] - 1]


def test_a_declared_dependence_is_checked(toys):
    oracle = toys.TwoArmsOracle(toys.TwoArms())
    rng = np.random.default_rng(0)
    with pytest.raises(PolicyError, match="declares depends_on = 'position'"):
        ask(oracle, Peeks(), lambda: rng.integers(1, 3, size=(4, 1)), np.zeros(4, int))
    rows = ask(oracle, Peeks(), lambda: np.array([[1], [2]]), np.arange(2))
    assert np.array_equal(rows, np.eye(2))
    assert declared(Peeks()) == "position" and declared(object()) == "prefix"
