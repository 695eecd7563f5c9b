"""What the study of language models says: exact numbers of small runs, and the finding itself."""

import dataclasses

import numpy as np
import pytest

import theorybench as tb
from theorybench.envs.training.thinking_steps.studies import LanguageModel, undecided

ID = "TheoryBench/ThinkingSteps-v0"
STUDY = next(study for study in tb.studies(ID) if study.id == "language-model")


def table(learners, seed=0, seeds=2):
    """Run the study on some of its learners: score and nats by learner."""
    own = dataclasses.replace(STUDY, run=LanguageModel(learners))
    (found,) = own.result(seed=seed, seeds=seeds).tables
    return {row[0]: (row[1], row[4]) for row in found.rows}


def test_undecided_is_the_entropy_of_what_is_done():
    """With chance at each of three decisions of six actions, STOP ends an episode with probability 1/6."""
    lab = tb.studies(ID)[0].bound()[1].at(thoughts=3)

    class Chance:
        def probs(self, observations):
            return np.full((len(observations), 6), 1 / 6)

    decisions = 1 + 5 / 6 + (5 / 6) ** 2
    assert undecided(lab.setting, Chance()) == pytest.approx(decisions * np.log(6))
    assert undecided(lab.setting, lab.oracle.optimal_policy) == 0.0


@pytest.mark.slow
def test_a_language_model_can_hold_the_optimum_but_commits_before_it_has_found_it():
    """With other seeds than the study's own."""
    names = ("a table", "the language model", "... no samples: the exact gradient", "... shown the optimal actions")
    names += ("... a fading entropy bonus",)
    found = table(names, seed=3)
    table_, plain, exact, shown, late = (found[name] for name in names)
    assert shown[0] > 0.98
    assert max(plain[0], exact[0]) < 0.75 < min(table_[0], late[0])
    assert late[0] - plain[0] > 0.2 and max(plain[1], exact[1]) < late[1]
