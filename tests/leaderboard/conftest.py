"""Synthetic records: no agent is trained here."""

import numpy as np
import pytest

from theorybench.leaderboard.records.record import make_record

KS = (1, 2, 4, 8, 16, 32, 64, 128)
ENVIRONMENTS = (
    ("TheoryBench/TreeMarkovChain-v0", {"L": 8, "pass_k": 1}, "reasoning"),
    ("TheoryBench/TreeMarkovChain-v0", {"L": 8, "pass_k": 4}, "reasoning"),
    ("TheoryBench/ReasoningTree-v0", {"d": 8, "L": 6}, "curriculum"),
    ("TheoryBench/PreferenceBandit-v0", {"theta_init": 0.3}, "preference"),
    ("TheoryBench/PreferenceBandit-v0", {"theta_init": 3.0}, "preference"),
)
SKILLS = {
    "optimal": 1.0,
    "astar-po": 0.9,
    "rlvr": 0.8,
    "curriculum-rlvr": 0.84,
    "dpo-on-policy": 0.7,
    "dpo-offline": 0.35,
    "sb3-ppo": 0.5,
    "reference": 0.0,
    "random": -0.2,
}
FEEDBACK = {"rlvr": "reward", "curriculum-rlvr": "reward", "sb3-ppo": "reward", "dpo-on-policy": "preference"}


def run(agent="rlvr", score=0.5, **changes):
    """One valid record; `changes` replace fields."""
    status = changes.get("status", "ok")
    fields = {
        "env_id": "TheoryBench/TreeMarkovChain-v0",
        "parameters": {"L": 8, "pass_k": 1},
        "fingerprint": "0123456789abcdef",
        "split": "scoring",
        "track": "reasoning",
        "agent": agent,
        "agent_digest": "a" * 16,
        "hyperparameters": {"learning_rate": 0.1},
        "privileged": agent == "optimal",
        "seed": 0,
        "budget": 20000,
        "spent": {"episodes": 20000, "steps": 80000},
        "curve": [],
        "metrics": {"objective": 0.5} if status == "ok" else {},
        "score": score if status == "ok" else None,
        "status": status,
        "error": None if status == "ok" else "ValueError: it broke",
        "seconds_wall": 3.25,
        "seconds_cpu": 3.0,
        "lifted": 1,
        "peak_memory_bytes": 400_000_000,
        "hardware": "Some processor, 2 cores, Linux",
        "versions": {"python": "3.11.9", "theorybench": "0.1.0", "torch": "2.13.0"},
        "git_commit": "0" * 40,
        "started_at": "2025-01-31T12:00:00+00:00",
    }
    return make_record(**{**fields, **changes})


def sweep(seeds=5, budget=20000):
    """Records as a whole sweep makes them: five environments, nine agents, curves, pass@K, some failures."""
    rng = np.random.default_rng(7)
    return [
        _trained(rng, agent, skill, i, environment, seed, budget)
        for i, environment in enumerate(ENVIRONMENTS)
        for agent, skill in SKILLS.items()
        if FEEDBACK.get(agent) != ("reward" if environment[2] == "preference" else "preference")
        for seed in range(seeds)
    ]


def _trained(rng, agent, skill, index, environment, seed, budget):
    env_id, parameters, track = environment
    still = agent in ("optimal", "reference")
    failed = agent == "sb3-ppo" and seed == 3 and index == 0
    marks = [budget // 64 * 2**k for k in range(7)]
    final = skill if still else float(np.clip(skill - 0.06 * index + rng.normal(0, 0.05), -1, 1))
    curve = [
        {
            "episodes": mark,
            "metrics": {"objective": 0.3, "score": final * (1 if still else 1 - np.exp(-4 * mark / budget))},
        }
        for mark in marks
    ]
    ends = [0.36 + 0.6 * final, 0.87 - 0.1 * final if agent == "rlvr" else 0.87 + 0.1 * final]
    passes = {
        f"{task}pass@{k}": float(ends[1] - (ends[1] - ends[0] * (0.9 if task else 1)) / k)
        for k in KS
        for task in ("", "task_0/", "task_1/")
    }
    return run(
        agent,
        final,
        env_id=env_id,
        parameters=parameters,
        fingerprint=f"{index:016x}",
        track=track,
        budget=budget,
        seed=seed,
        feedback=FEEDBACK.get(agent, "none"),
        spent={"episodes": marks[-1], "steps": marks[-1] * 8},
        curve=curve[:3] if failed else curve,
        metrics={}
        if failed
        else {"objective": ends[0], "coverage": float("inf"), **(passes if track == "reasoning" else {})},
        status="failed" if failed else "ok",
        error="RuntimeError: the loss diverged (my_agent.py, line 17, in train)" if failed else None,
        seconds_wall=float(rng.uniform(0.5, 12)),
        lifted=5 if agent in ("rlvr", "astar-po") else 1,
        started_at=f"2025-01-31T12:{index:02d}:{seed:02d}+00:00",
    )


@pytest.fixture(scope="session")
def synthetic_run():
    return run


@pytest.fixture(scope="session")
def synthetic_sweep():
    return sweep()
