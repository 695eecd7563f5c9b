"""Measure what the pages show: `python docs/measure.py [PART ...]`, without a part all of them; then `generate.py`.

Parts: each suite that ships, whose runs go to `results/<suite>` and are resumed from there; `claims` and `studies` of
the tree family; `policies`, the pictures of what policies do. Data goes to `docs/reference`, pictures to
`docs/pictures`. It does what these commands do, and keeps what pages need of their output:

    theorybench run --suite tree --out results/tree && theorybench leaderboard results/tree
    theorybench claims TreeMarkovChain MetastableChain
    theorybench study TreeMarkovChain --pictures docs/pictures
"""

import dataclasses
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported: claims and studies train small arrays

import gymnasium as gym
import numpy as np
import reference_data as data
from agent_groups import curve_groups

from theorybench.envs.core.errors import TheoryBenchError
from theorybench.envs.core.policy import Policy, SettingPolicy
from theorybench.envs.core.registry import lookup
from theorybench.envs.tree.flow import flow_policies
from theorybench.envs.tree.markov_chain import TreeMarkovChain
from theorybench.leaderboard.board import make_board
from theorybench.leaderboard.config import list_suites, named_suite
from theorybench.leaderboard.curve_picture import picture_of_curves
from theorybench.leaderboard.exhibit_pictures import write_pictures
from theorybench.leaderboard.lab import claims, studies
from theorybench.leaderboard.matrix import plan, sweep
from theorybench.leaderboard.picture import picture, save
from theorybench.leaderboard.report import check_claim, show_study
from theorybench.leaderboard.store import load_records

ROOT = Path(__file__).resolve().parents[1]
PICTURES = Path(__file__).parent / "pictures"
#: Environments whose claims and studies the pages show.
TREES = ("TheoryBench/TreeMarkovChain-v0", "TheoryBench/MetastableChain-v0")


def measure_suite(name: str) -> None:
    """Run a suite, keep its numbers, draw its ranking and its curves."""
    suite, folder = named_suite(name), ROOT / "results" / name
    sweep(suite, folder)
    keys = plan(suite).keys
    board = make_board([record for record in load_records(folder) if record.key in keys], title=f"Suite {name}")
    order = [entry.label or entry.id for entry in suite.environments]
    labels = [entry.label or entry.agent for entry in suite.agents]
    agents = sorted(board.agents, key=lambda agent: labels.index(agent.label))
    groups = curve_groups((agent.label, agent.agent, agent.hyperparameters) for agent in agents)
    ordered = sorted(board.environments, key=lambda entry: order.index(entry.environment.label))
    board = dataclasses.replace(board, environments=tuple(ordered))
    drawn = [
        picture(board, PICTURES / f"ranking-{name}.png"),
        picture_of_curves(board, PICTURES / f"curves-{name}.png", groups),
    ]
    data.write(name, dataclasses.asdict(data.numbers_of(name, board, _shrunk(drawn))))


def measure_claims() -> None:
    """Check the claims of the tree family."""
    bound = [claim for id in TREES for claim in claims(id)]
    rows = [data.claim_data(check_claim(claim, seed=0), _fingerprint(claim)) for claim in bound]
    data.write("claims-tree", {"provenance": data.here(), "claims": rows})


def measure_studies() -> None:
    """Run the studies of the tree family, and draw them."""
    rows = []
    for study in [study for id in TREES for study in studies(id)]:
        shown = show_study(study, seed=0, seeds=None)
        if shown.exhibit is None:
            raise TheoryBenchError(f"the study {study.id} failed: {shown.error}")
        drawn = write_pictures(shown.exhibit, PICTURES, study.id)
        rows.append(data.study_data(shown, shown.exhibit, _fingerprint(study), _shrunk(drawn)))
    data.write("studies-tree", {"provenance": data.here(), "studies": rows})


def draw_policies() -> None:
    """Draw what training does to the policies of the tree, and walks on the metastable chain."""
    tree = TreeMarkovChain(train_tasks=(0,))
    trained = {"REINFORCE, 1000 updates on task 0": 0, "reject-easy, 1000 updates on task 0": 5}
    policies: dict[str, Policy] = {"base model": SettingPolicy(tree, "reference")}
    policies |= {name: flow_policies(tree, 0.05, [1000], reject_easy=n)[0] for name, n in trained.items()}
    drawn = [save(tree.policy_picture(policies), PICTURES / "tree-policies.png"), _draw_walks()]
    fingerprints = {id: lookup(id).make_setting({}).fingerprint for id in TREES}
    data.write("policies-tree", {"fingerprints": fingerprints, "pictures": _shrunk(drawn)})


def _draw_walks() -> Path:
    """Draw one walk of the base model on the metastable chain, and one of the optimum, both at their ends."""
    from matplotlib.figure import Figure

    env = gym.make(TREES[1], render_mode="rgb_array")
    chain: Any = env.unwrapped
    rng = np.random.default_rng(3)
    figure = Figure(figsize=(10.4, 5.9), dpi=110)
    policies = {"the base model": chain.reference_policy, "the optimum": chain.oracle.optimal_policy}
    for axes, (name, policy) in zip(figure.subplots(1, 2), policies.items(), strict=True):
        observation, _ = env.reset(seed=3)
        ended = False
        while not ended:
            action = policy.sample(observation[None], rng)[0]
            observation, _, ended, _, _ = env.step(int(action))
        axes.imshow(env.render())
        axes.set_title(name, fontsize=12)
        axes.axis("off")
    figure.subplots_adjust(0, 0, 1, 0.95, 0.02, 0)
    return save(figure, PICTURES / "metastable-walks.png")


def _shrunk(paths: Sequence[Path]) -> dict[str, str]:
    """Reduce pictures to 256 colours, a third of their size; return their digests.

    An octree keeps the colours of small marks, which a median cut gives up.
    """
    from PIL import Image

    for path in paths:
        if path.suffix == ".png":
            with Image.open(path) as picture:
                few = picture.convert("RGB").quantize(256, method=Image.Quantize.FASTOCTREE)
            few.save(path, optimize=True)
    return data.digests(paths)


def _fingerprint(experiment: Any) -> str:
    fingerprint: str = experiment.setting.fingerprint
    return fingerprint


def parts() -> dict[str, Callable[[], None]]:
    """Return what can be measured, by name."""
    suites = {name: lambda name=name: measure_suite(name) for name in list_suites()}
    return {**suites, "claims": measure_claims, "studies": measure_studies, "policies": draw_policies}


if __name__ == "__main__":
    known = parts()
    for wanted in sys.argv[1:] or known:
        if wanted not in known:
            sys.exit(f"measure.py: no part {wanted!r}; there are {', '.join(known)}")
        known[wanted]()
        print(f"measured {wanted}")
