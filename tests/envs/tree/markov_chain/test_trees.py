"""Trees: the generator's promises, and classes of CoTs against a list of all of them."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from theorybench.envs.tree.markov_chain.trees import (
    Shape,
    base_chain,
    canonical_tree,
    cot_classes,
    edge_code,
    random_tree,
)


@st.composite
def trees(draw: st.DrawFn) -> tuple[Shape, int, int, int, float]:
    shape = Shape(draw(st.integers(2, 5)), draw(st.integers(1, 4)), draw(st.integers(2, 4)))
    C, tasks = draw(st.integers(1, shape.M)), draw(st.integers(1, shape.M0))
    return shape, C, tasks, draw(st.integers(0, 10**6)), draw(st.sampled_from([1e-3, 0.1, 0.5, 1.0]))


@settings(max_examples=80, deadline=None)
@given(trees())
def test_random_trees_keep_their_promises(drawn: tuple) -> None:
    shape, C, tasks, instance, low_weight = drawn
    tree = random_tree(shape, C, tasks, instance)
    again = random_tree(shape, C, tasks, instance)
    assert all((a == b).all() for a, b in zip(tree, again, strict=True))
    assert (tree.high.sum(axis=1) == C).all()
    assert len(set(tree.starts.tolist())) == tasks
    chain = base_chain(tree.high, low_weight)
    code = edge_code(tree.high, chain, shape.L)
    for start, target in zip(tree.starts, tree.targets, strict=True):
        classes = cot_classes(shape, code, start, target)
        probability, easy = [], []
        for middle in itertools.product(range(shape.M), repeat=shape.L - 2):
            states = (start, *middle, target)
            nodes = [shape.layer(t).start + s for t, s in enumerate(states[:-1])]
            edges = list(zip(nodes, states[1:], strict=True))
            probability.append(np.prod([chain[edge] for edge in edges]))
            easy.append(all(tree.high[edge] for edge in edges))
        assert any(easy)
        acc = np.array(probability) / np.sum(probability)
        assert classes.counts.sum() == len(acc) and classes.easy.sum() == sum(easy)
        assert (classes.easy * classes.probability).sum() == pytest.approx(np.array(probability)[easy].sum())
        np.testing.assert_allclose(np.repeat(classes.levels, classes.counts.astype(int)), np.sort(acc), rtol=1e-11)
        assert (np.diff(classes.levels) > 0).all()


def test_instances_differ() -> None:
    shape = Shape(8, 6, 6)
    assert (random_tree(shape, 1, 6, 0).high != random_tree(shape, 1, 6, 1).high).any()


def test_canonical_correctness() -> None:
    shape, tree = Shape(4, 2, 2), canonical_tree()
    chain = base_chain(tree.high, 0.1)
    code = edge_code(tree.high, chain, 4)
    first, second = (cot_classes(shape, code, s, t) for s, t in zip(tree.starts, tree.targets, strict=True))
    np.testing.assert_allclose(first.levels, [0.007280, 0.132363, 0.727995], atol=5e-7)
    np.testing.assert_allclose(second.levels, [0.009557, 0.017376, 0.955691], atol=5e-7)
    assert first.counts.tolist() == second.counts.tolist() == [1, 2, 1]
    assert sorted(second.probability[second.per_code > 0]) == pytest.approx([0.004132, 0.007513, 0.413223], abs=5e-7)


def test_classes_of_a_large_tree_need_no_list() -> None:
    shape = Shape(16, 10, 50)
    tree = random_tree(shape, 5, 3, 7)
    code = edge_code(tree.high, base_chain(tree.high, 0.1), shape.L)
    classes = cot_classes(shape, code, tree.starts[0], tree.targets[0])
    assert classes.counts.sum() == pytest.approx(50.0**14)
    assert classes.levels @ classes.counts == pytest.approx(1)
