"""What arXiv 2511.07368 says of TreeMarkovChain, as tests that run.

Training is on the first task alone, from the base chain's logits, learning rate .05, 1000 updates of one CoT, as in the
paper, unless said otherwise; see `theorybench.envs.tree.markov_chain.experiments` for what is predicted and measured.
"""

from theorybench.envs.core.evidence.claim import Claim
from theorybench.envs.tree.markov_chain.evidence import exploration_claims, hard_questions
from theorybench.envs.tree.markov_chain.evidence import inference_time_claims as test_time_claims
from theorybench.envs.tree.markov_chain.experiments import Crossing, Metric, NoiseExponent, Training, first_task_claim

CLAIMS: tuple[Claim, ...] = (
    first_task_claim(
        "squeezing",
        "squeezing; tolerance: the mean of runs at a finite step size differs from the flow by less than .002",
        "REINFORCE on one task moves its mass to the easy CoT: P(easy) after 1000 updates is the population flow's",
        "an algorithm that does not ascend E[reward], such as one with a penalty to the reference",
        Metric("task_0/easy"),
        0.002,
        "P(easy) of the flow theta_{i+1} = theta_i + .05 grad E[R] at i = 1000",
    ),
    first_task_claim(
        "squeezing-hard",
        "squeezing; tolerance: the mean of runs at a finite step size differs from the flow by less than .002",
        "It takes mass from the hard valid CoTs of that task, although they are rewarded",
        "exploration: rejecting the questions that the model already solves",
        Metric("task_0/hard"),
        0.002,
        "P(hard) of the flow theta_{i+1} = theta_i + .05 grad E[R] at i = 1000",
    ),
    first_task_claim(
        "squeezing-noise",
        "squeezing; tolerance: next orders in the step size at one episode an update",
        "Single runs scatter about the flow by an amount that falls as episodes an update to the power -1/2",
        "a bias of the runs that more episodes do not remove",
        NoiseExponent(),
        0.02,
        "-1/2",
    ),
    first_task_claim(
        "forgetting",
        "forgetting; tolerance: the mean of runs at a finite step size differs from the flow by less than .0005",
        "The shared rows of a Markov policy forget the task that is not trained: its P(easy) is the flow's",
        "a policy that tells the tasks apart",
        Metric("task_1/easy"),
        0.0005,
        "P(easy) on the second task of the flow theta_{i+1} = theta_i + .05 grad E[R] at i = 1000",
    ),
    first_task_claim(
        "forgetting-prefix",
        "forgetting, our contrast; tolerance: rounding of probabilities",
        "A policy that sees the whole prefix keeps the task that is not trained exactly as it was",
        "a policy whose rows are shared between tasks",
        Metric("task_1/easy", Training(policy="prefix", seeds=5)),
        1e-6,
        "P(easy) on the second task of the reference",
    ),
    first_task_claim(
        "consistency",
        "consistency is not correctness; tolerance: none beyond the interval of the mean curve",
        "Training raises pass@1 and lowers pass@K from some K on: the least K below the reference's is the flow's",
        "an objective with an eye for coverage, such as pass@6",
        Crossing(),
        0.0,
        "min K with pass@K(flow at i = 1000) < pass@K(pi)",
    ),
    first_task_claim(
        "consistency-many-tries",
        "consistency is not correctness; tolerance: the mean of runs at a finite step size, as for squeezing",
        "With 128 tries the trained policy falls short of the reference by what the flow says",
        "an objective with an eye for coverage, such as pass@6",
        Metric("task_0/pass@128"),
        0.002,
        "pass@128 of the flow theta_{i+1} = theta_i + .05 grad E[R] at i = 1000",
    ),
    first_task_claim(
        "consistency-limit",
        "E[reward] is linear in the CoT distribution, so its maximum is a point; tolerance: none",
        "Trained for long, pass@K is that of the easy CoT alone for every K: the reference is ahead from the K at "
        "which it passes the easy CoT's correctness",
        "an objective with an eye for coverage, such as pass@6",
        Crossing(Training(learning_rate=0.5, updates=4000, seeds=16), limit=True),
        0.0,
        "min K with acc(easy) < pass@K(pi)",
    ),
    *exploration_claims.CLAIMS,
    *test_time_claims.CLAIMS,
    *hard_questions.CLAIMS,
)
