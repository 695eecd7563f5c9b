"""The laboratory: traces of training, and experiments bound to their settings."""

from pathlib import Path

import numpy as np
import pytest

import theorybench as tb
from theorybench.envs.core.errors import UnknownNameError
from theorybench.envs.core.registry import resolve_env

TOYS = Path(__file__).parents[1] / "data" / "toys.py"


@pytest.fixture(scope="module")
def lab():
    return tb.studies(f"{TOYS}:Toys/TwoArms-v0")[0].bound()[1]


def test_claims_and_studies_are_bound_to_their_parameters():
    study, _ = tb.studies(f"{TOYS}:Toys/TwoArms-v0")
    assert study.setting.gap == 0.5 and study.bound()[1].setting == study.setting
    assert [claim.setting.gap for claim in tb.claims(f"{TOYS}:Toys/TwoArms-v0")] == [0.4, 0.4, 0.2]
    with pytest.raises(UnknownNameError):
        tb.studies("TwoArmz")
    shipped = [study.id for id in tb.list_envs() if id.startswith("TheoryBench/") for study in tb.studies(id)]
    assert len(set(shipped)) == len(shipped)  # commands and pictures name them without their setting


def test_a_trace_holds_a_policy_after_each_part_of_the_budget(lab):
    settings = {"learning_rate": 0.5, "episodes_per_update": 16}
    traces = lab.trace("rlvr", range(70), 640, points=10, **settings)  # more runs than train together
    assert len(traces) == 70
    for trace in traces:
        assert [spent for spent, _ in trace] == [64 * (i + 1) for i in range(10)]
    trained = lab.train("rlvr", range(70), 640, **settings)
    for trace, policy in zip(traces, trained, strict=True):
        np.testing.assert_array_equal(trace[-1][1].table, policy.table)
    values = [[lab.oracle.score(policy) for _, policy in trace] for trace in traces]
    assert np.mean(values, axis=0)[0] < np.mean(values, axis=0)[-1]


def test_a_training_of_a_network_that_is_asked_for_again_is_not_repeated(lab):
    settings = {"policy": "mlp", "hidden_units": 4}
    three, two = (lab.train("rlvr", range(runs), 128, **settings) for runs in (3, 2))
    assert all(one is other for one, other in zip(three, two, strict=False)) and three[2] is not two[1]
    assert lab.train("rlvr", [0], 128, **settings, learning_rate=0.5)[0] is not three[0]
    assert lab.at(gap=0.25).train("rlvr", [0], 128, **settings)[0] is not three[0]
    table, again = (lab.train("rlvr", range(2), 128)[0] for _ in range(2))
    assert table is not again


def test_a_trace_ends_with_the_result_where_the_budget_is_not_spent(lab):
    (trace,) = lab.trace("rlvr", [0], 100, points=2, episodes_per_update=32)
    assert [spent for spent, _ in trace] == [64, 96]


def test_agents_that_train_one_run_at_a_time_are_traced_too(lab):
    resolve_env(f"{TOYS}:Toys/TwoArms-v0")
    traces = lab.trace(f"{TOYS}:Good", [0, 1], 640, points=4)
    assert [[spent for spent, _ in trace] for trace in traces] == [[160, 320, 480, 640]] * 2
