"""Your own agent in one file: imitate what was rewarded. Run it, or name it on the command line:

theorybench run --envs TreeMarkovChain --agents examples/my_agent.py:CountSuccesses,rlvr,reference --out results/mine
"""

import numpy as np

import theorybench as tb


class CountSuccesses(tb.Agent):
    """Counts the actions of rewarded episodes, and plays in proportion to the counts."""

    def train(self, envs, budget, *, seed, log):
        view, rng = tb.View.of(envs.unwrapped.setting), np.random.default_rng(seed)
        counts = np.ones((view.rows, envs.single_action_space.n))
        envs.reset(seed=seed)
        while budget.remaining >= 64:
            policy = tb.TablePolicy(view, counts / counts.sum(axis=1, keepdims=True))
            won = tb.rollout(envs, policy, episodes=64, rng=rng)
            for t in range(won.actions.shape[1]):
                use = (won.rewards > 0) & (won.lengths > t)
                np.add.at(counts, (view.index(won.observations[use, t]), won.actions[use, t]), 1.0)
            log(policy)
        return tb.TablePolicy(view, counts / counts.sum(axis=1, keepdims=True))


if __name__ == "__main__":
    for agent in (CountSuccesses(), "rlvr", "reference"):
        print(agent, tb.run("TheoryBench/TreeMarkovChain-v0", agent, seed=0).score)
