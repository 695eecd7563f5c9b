"""A two-armed bandit with its oracle, and agents that do what agents should not; named from tests by file."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import theorybench as tb
from theorybench.envs.core.evidence.interval import Interval
from theorybench.envs.core.evidence.lab import run_seeds
from theorybench.envs.core.evidence.study import Axis, Chart, Column, Picture, Series, StudyResult, Table, measured
from theorybench.envs.core.oracle import Oracle
from theorybench.envs.core.registry import load_module

TOYS = load_module(str(Path(__file__).parents[2] / "envs" / "core" / "toys.py"))
TwoArms = TOYS.TwoArms


class TwoArmsOracle(TOYS.TwoArmsOracle):
    """Tells the chance of the second arm, too."""

    def measure(self, policy, metrics):
        second = policy.probs(np.zeros((1, 1), np.int8))[0, 1]
        return super().measure(policy, metrics) | {"second": float(second)}


def _doubles(lab, seed):
    rewards = lab.simulate(lab.oracle.optimal_policy, 4000, seed).rewards
    return rewards.mean(), rewards.mean() - 0.03, rewards.mean() + 0.03


def _learns(lab, seed):
    policies = lab.at(gap=0.5).train("rlvr", [seed, seed + 1], 640, learning_rate=0.5)
    scores = [lab.at(gap=0.5).oracle.score(policy) for policy in policies]
    return min(scores), min(scores), 1.0


CLAIMS = (
    tb.Claim(
        id="two-arms-win",
        source="by hand",
        statement="The best arm pays more",
        predicted=lambda oracle: 0.5 + oracle.setting.gap,
        measure=_doubles,
        falsified_by="noise",
        formula=".5 + gap",
    ),
    tb.Claim(
        id="two-arms-learn",
        source="by hand",
        statement="REINFORCE finds it",
        predicted=lambda oracle: 1.0,
        measure=_learns,
        falsified_by="a lazy learner",
    ),
    tb.Claim(
        id="two-arms-wrong",
        source="nobody",
        statement="It pays .1.",
        predicted=lambda oracle: 0.1,
        measure=_doubles,
        falsified_by="the truth",
        parameters={"gap": 0.2},
    ),
)


def _learning(lab, seed, seeds):
    traces = lab.trace("rlvr", run_seeds(seed, seeds), 640, points=4, learning_rate=0.5)
    seconds = [[lab.oracle.evaluate(policy, ["second"])["second"] for _, policy in trace] for trace in traces]
    episodes = [spent for spent, _ in traces[0]]
    curve = Series("rlvr", "predicted", episodes, np.ones(len(episodes)))
    paper = Series("rlvr", "published", [640], [0.9])
    chart = Chart(
        "Second arm", Axis("episodes", "log"), Axis("chance"), (measured("rlvr", episodes, seconds), curve, paper)
    )
    last = measured("rlvr", [640], np.array(seconds)[:, -1:])
    cells = ("rlvr", Interval(last.y[0], last.low[0], last.high[0]), 0.9, None)
    columns = (Column("agent"), Column("chance"), Column("paper", ".1f"), Column("nothing"))
    svg = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 4 2"><rect width="4" height="2"/></svg>'
    return StudyResult(
        tables=(Table("Last", columns, (cells,), "Theirs is a guess."),),
        charts=(chart,),
        pictures=(Picture("Box", svg),),
        notes=(f"{seeds} runs of {lab.setting.gap}.",),
    )


def _breaks(lab, seed, seeds):
    raise ValueError("no such thing")


STUDIES = (
    tb.Study(
        id="two-arms-learning",
        source="by hand",
        title="Learning",
        text="It climbs.",
        run=_learning,
        seeds=3,
        parameters={"gap": 0.5},
    ),
    tb.Study(id="two-arms-broken", source="nobody", title="Broken", text="It breaks.", run=_breaks),
)
tb.register("Toys/TwoArms-v0", TwoArms, TwoArmsOracle, claims=CLAIMS, budget=640, studies=STUDIES)


class Half(tb.Policy):
    depends_on = "position"
    row = (0.5, 0.5)

    def probs(self, observations):
        return np.tile(self.row, (len(observations), 1))


class NaN(Half):
    row = (np.nan, 1.0)


class Unnormalised(Half):
    row = (0.7, 0.7)


def spend(envs, budget, episodes):
    """Pull the first arm until about so many episodes are spent."""
    envs.reset(seed=0)
    while budget.spent < episodes:
        envs.step(np.zeros(envs.num_envs, np.int64))


class Good(tb.Agent):
    num_envs = 8

    def train(self, envs, budget, *, seed, log):
        for part in range(1, 5):
            spend(envs, budget, part * budget.total // 4)
            log(Half())
        return envs.unwrapped.initial_policy


class Raises(Good):
    def train(self, envs, budget, *, seed, log):
        spend(envs, budget, 64)
        log(Half())
        raise ValueError("the loss exploded")


class Together(tb.Agent):
    """Trains several seeds at a time."""

    def train(self, envs, budget, *, seed, log):
        return Half()

    def train_runs(self, envs, budgets, seeds, logs):
        return [self.train(envs, b, seed=s, log=log) for b, s, log in zip(budgets, seeds, logs, strict=True)]


class RaisesForSeed1(Together):
    """Fails alone, and as part of a group."""

    def train(self, envs, budget, *, seed, log):
        if seed == 1:
            raise ValueError("seed 1 is unlucky")
        return Half()


class DiesForSeed1(RaisesForSeed1):
    def train(self, envs, budget, *, seed, log):
        if seed == 1:
            os._exit(7)
        return Half()


class Hangs(Good):
    def train(self, envs, budget, *, seed, log):
        while True:
            time.sleep(0.1)


class Naps(Good):
    """Takes a while, and tells which process it runs in."""

    def train(self, envs, budget, *, seed, log):
        print(f"pid {os.getpid()}", flush=True)
        time.sleep(0.1)
        return super().train(envs, budget, seed=seed, log=log)


class HangsWithChild(Hangs):
    """Hangs beside a process of its own."""

    def train(self, envs, budget, *, seed, log):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        print(f"pid {child.pid}\npid {os.getpid()}", flush=True)
        return super().train(envs, budget, seed=seed, log=log)


class LogsNaN(Good):
    def train(self, envs, budget, *, seed, log):
        spend(envs, budget, 64)
        log(NaN())


class OverspendsAfterLogging(Good):
    def train(self, envs, budget, *, seed, log):
        log(Half())
        spend(envs, budget, 10**9)


class Talks(Good):
    def train(self, envs, budget, *, seed, log):
        print("hello from the agent")
        return Half()


class Forges(Good):
    """Replaces what scores policies by what gives it 99, for itself and for whoever comes after it."""

    def train(self, envs, budget, *, seed, log):
        Oracle.normalise = lambda self, objective: 99.0
        return super().train(envs, budget, seed=seed, log=log)


class ForgesModestly(Good):
    """The same, with a score that some policy earns."""

    def train(self, envs, budget, *, seed, log):
        Oracle.normalise = lambda self, objective: 0.99
        return super().train(envs, budget, seed=seed, log=log)


class Hoards(Good):
    """Takes all the memory that there is."""

    def train(self, envs, budget, *, seed, log):
        hoard = []
        while True:
            hoard.append(np.ones(2**21))  # 16 MiB
            time.sleep(0.005)


class WantsLabels(Good):
    feedback = "label"


def agent(act):
    """An agent that returns what act(envs, budget, log) returns."""

    def train(self, envs, budget, *, seed, log):
        return act(envs, budget, log)

    return type("Acts", (Good,), {"train": train, "__module__": __name__})


Exits = agent(lambda envs, budget, log: sys.exit(3))
EndsItsProcess = agent(lambda envs, budget, log: os._exit(7))
KillsItsProcess = agent(lambda envs, budget, log: os.kill(os.getpid(), signal.SIGKILL))
Crashes = agent(lambda envs, budget, log: os.kill(os.getpid(), signal.SIGSEGV))
ReturnsNaN = agent(lambda envs, budget, log: NaN())
ReturnsUnnormalised = agent(lambda envs, budget, log: Unnormalised())
ReturnsNone = agent(lambda envs, budget, log: None)
ReadsTheOracle = agent(lambda envs, budget, log: envs.unwrapped.oracle.optimal_policy)
Overspends = agent(lambda envs, budget, log: spend(envs, budget, 10**9))
