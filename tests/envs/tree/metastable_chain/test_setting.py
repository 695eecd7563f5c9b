"""The dynamics of MetastableChain against its definition."""

import itertools

import gymnasium as gym
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from theorybench.envs.tree.metastable_chain.setting import MetastableChain

ID = "TheoryBench/MetastableChain-v0"


def exit_and_entry(setting):
    """Read the two states off the base model: only an exit leaps, and a leap leads to the entry."""
    rows = setting.reference_rows
    return int(np.argmax(rows[: setting.M, setting.M])), int(setting.tables.place[setting.M])


def ends(setting, start, response):
    """(reward, steps made, wrong) of a response, from the definition."""
    exit, entry = exit_and_entry(setting)
    cluster, state = 1, start
    for step, action in enumerate(response[: setting.horizon], 1):
        if action < setting.M:
            state = action
        elif action == setting.M and state == exit:
            cluster, state = cluster + 1, entry
        elif action == setting.M + 1 and state == entry:
            cluster, state = max(1, cluster - 1), exit
        else:
            return 0, step, True
        if cluster == setting.K:
            return 1, step, False
    return 0, setting.horizon, False


@st.composite
def small_settings(draw):
    K, M, two_way = draw(st.integers(2, 3)), draw(st.integers(2, 3)), draw(st.booleans())
    longest = 5 if M + two_way < 4 else 4
    H = draw(st.integers(2 * (K - 1), max(2 * (K - 1), longest)))
    return MetastableChain(
        K=K, M=M, two_way=two_way, H=H, eps=draw(st.floats(0.01, 0.99)), instance=draw(st.integers(0, 10**6))
    )


@settings(max_examples=30, deadline=None)
@given(small_settings())
def test_every_response_is_judged_by_the_definition(setting):
    responses = np.array(list(itertools.product(range(setting.num_actions), repeat=setting.horizon)))
    prompts = np.repeat(np.arange(setting.M), len(responses))
    judged = setting.judge(prompts, np.tile(responses, (setting.M, 1)) + 1)
    expected = [ends(setting, start, r)[0] for start in range(setting.M) for r in responses.tolist()]
    assert np.array_equal(judged, expected)


@settings(max_examples=30, deadline=None)
@given(small_settings())
def test_the_reference_is_uniform_but_for_the_edges_between_clusters(setting):
    exit, entry = exit_and_entry(setting)
    assert exit != entry
    rows = setting.reference_rows
    for last in range(setting.num_actions):
        state = setting.tables.place[last]
        sparse = {exit: setting.M} | ({entry: setting.M + 1} if setting.two_way else {})
        expected = np.zeros(setting.num_actions)
        expected[: setting.M] = (1 - (setting.eps if state in sparse else 0)) / setting.M
        if state in sparse:
            expected[sparse[state]] = setting.eps
        np.testing.assert_allclose(rows[last], expected, rtol=0, atol=1e-15)


def test_every_action_is_legal_and_a_wrong_step_ends_the_episode():
    env = gym.make(ID, two_way=True)
    setting = env.unwrapped.setting
    exit, entry = exit_and_entry(setting)
    for start, action in itertools.product(range(setting.M), range(setting.num_actions)):
        _, info = env.reset(seed=0, options={"prompt": start})
        assert info["action_mask"].all()
        _, reward, terminated, truncated, info = env.step(action)
        wrong = (action == setting.M and start != exit) or (action == setting.M + 1 and start != entry)
        assert (reward, terminated, truncated) == (0.0, wrong, False)


def test_observations_show_start_and_steps_and_the_horizon_ends_an_episode():
    env = gym.make(ID, K=3, H=5)
    exit, entry = exit_and_entry(env.unwrapped.setting)
    observation, _ = env.reset(seed=0, options={"prompt": exit})
    assert observation.tolist() == [exit + 1, 0, 0, 0, 0, 0]
    assert env.step(4)[0].tolist() == [exit + 1, 5, 0, 0, 0, 0]
    steps = [env.step(a)[1:3] for a in (entry, entry, entry, exit)]
    assert steps == [(0.0, False)] * 3 + [(0.0, True)]


def test_a_step_back_leads_to_the_exit_before_and_from_the_first_cluster_to_its_own():
    env = gym.make(ID, two_way=True, render_mode="ansi")
    exit, entry = exit_and_entry(env.unwrapped.setting)
    env.reset(seed=0, options={"prompt": entry})
    seen = []
    for action in (5, 4, 5, 4, exit, 4):
        assert not env.step(action)[2]
        seen.append(env.render().splitlines()[1].split(maxsplit=1)[1])
    places = [(1, exit, "exit"), (2, entry, "entry"), (1, exit, "exit"), (2, entry, "entry"), (2, exit, "exit")]
    assert seen[:5] == [f"{cluster} of 4, state s{place} ({name})" for cluster, place, name in places]
    assert seen[5] == f"3 of 4, state s{entry} (entry)"


def test_a_slow_chain_takes_a_horizon_of_its_own():
    assert gym.make(ID, eps=0.001, H=2048).unwrapped.setting.horizon == 2048


def test_instances_place_entry_and_exit():
    pairs = {exit_and_entry(MetastableChain(instance=i)) for i in range(200)}
    assert pairs == set(itertools.permutations(range(4), 2))
    assert len({MetastableChain(instance=i).horizon for i in range(20)}) == 1
    assert MetastableChain(instance=9_999).split == "tuning" and MetastableChain(instance=10_000).split == "scoring"


def test_text_says_why_a_walk_ended():
    env = gym.make(ID, two_way=True, H=6, render_mode="ansi")
    exit, entry = exit_and_entry(env.unwrapped.setting)

    def ends(start, *actions):
        env.reset(seed=0, options={"prompt": start})
        for action in actions:
            assert "  end " not in env.render()
            env.step(action)
        return env.render().splitlines()[-1].split(maxsplit=1)

    assert ends(entry, 4) == ["end", f"wrong step, s{entry} has no leap"]
    assert ends(exit, 4, exit, 5) == ["end", f"wrong step, s{exit} has no step back"]
    assert ends(exit, 4, exit, 4, exit, 4) == ["end", "reached cluster 4"]
    assert ends(exit, exit, exit, exit, exit, exit, 4) == ["end", "out of time"]  # the last step is a leap that counts
    assert ends(exit, exit, exit, exit, exit, entry, 4) == ["end", f"wrong step, s{entry} has no leap"]
