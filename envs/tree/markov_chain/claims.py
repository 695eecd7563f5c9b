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
        Metric("task_0/easy"),
        source="squeezing",
        statement="REINFORCE on one task moves its mass to the easy CoT: P(easy) after 1000 updates is the "
        "population flow's",
        falsified_by="an algorithm that does not ascend E[reward], such as one with a penalty to the reference",
        formula="P(easy) of the flow theta_{i+1} = theta_i + .05 grad E[R] at i = 1000",
        tolerance=0.002,
        tolerance_reason="the mean of runs at a finite step size differs from the flow by less than .002",
    ),
    first_task_claim(
        "squeezing-hard",
        Metric("task_0/hard"),
        source="squeezing",
        statement="It takes mass from the hard valid CoTs of that task, although they are rewarded",
        falsified_by="exploration: rejecting the questions that the model already solves",
        formula="P(hard) of the flow theta_{i+1} = theta_i + .05 grad E[R] at i = 1000",
        tolerance=0.002,
        tolerance_reason="the mean of runs at a finite step size differs from the flow by less than .002",
    ),
    first_task_claim(
        "squeezing-noise",
        NoiseExponent(),
        source="squeezing",
        statement="Single runs scatter about the flow by an amount that falls as episodes an update to the power -1/2",
        falsified_by="a bias of the runs that more episodes do not remove",
        formula="-1/2",
        tolerance=0.02,
        tolerance_reason="next orders in the step size at one episode an update",
    ),
    first_task_claim(
        "forgetting",
        Metric("task_1/easy"),
        source="forgetting",
        statement="The shared rows of a Markov policy forget the task that is not trained: its P(easy) is the flow's",
        falsified_by="a policy that tells the tasks apart",
        formula="P(easy) on the second task of the flow theta_{i+1} = theta_i + .05 grad E[R] at i = 1000",
        tolerance=0.0005,
        tolerance_reason="the mean of runs at a finite step size differs from the flow by less than .0005",
    ),
    first_task_claim(
        "forgetting-prefix",
        Metric("task_1/easy", Training(policy="prefix", seeds=5)),
        source="forgetting, our contrast",
        statement="A policy that sees the whole prefix keeps the task that is not trained exactly as it was",
        falsified_by="a policy whose rows are shared between tasks",
        formula="P(easy) on the second task of the reference",
        tolerance=1e-6,
        tolerance_reason="rounding of probabilities",
    ),
    first_task_claim(
        "consistency",
        Crossing(),
        source="consistency is not correctness",
        statement="Training raises pass@1 and lowers pass@K from some K on: the least K below the reference's is "
        "the flow's",
        falsified_by="an objective with an eye for coverage, such as pass@6",
        formula="min K with pass@K(flow at i = 1000) < pass@K(pi)",
    ),
    first_task_claim(
        "consistency-many-tries",
        Metric("task_0/pass@128"),
        source="consistency is not correctness",
        statement="With 128 tries the trained policy falls short of the reference by what the flow says",
        falsified_by="an objective with an eye for coverage, such as pass@6",
        formula="pass@128 of the flow theta_{i+1} = theta_i + .05 grad E[R] at i = 1000",
        tolerance=0.002,
        tolerance_reason="the mean of runs at a finite step size, as for squeezing",
    ),
    first_task_claim(
        "consistency-limit",
        Crossing(Training(learning_rate=0.5, updates=4000, seeds=16), limit=True),
        source="E[reward] is linear in the CoT distribution, so its maximum is a point",
        statement="Trained for long, pass@K is that of the easy CoT alone for every K: the reference is ahead "
        "from the K at "
        "which it passes the easy CoT's correctness",
        falsified_by="an objective with an eye for coverage, such as pass@6",
        formula="min K with acc(easy) < pass@K(pi)",
    ),
    *exploration_claims.CLAIMS,
    *test_time_claims.CLAIMS,
    *hard_questions.CLAIMS,
)
