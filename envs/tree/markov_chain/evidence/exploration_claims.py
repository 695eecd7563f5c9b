"""What keeps exploration alive in training on TreeMarkovChain: rejecting easy questions, or a penalty.

Reject-easy with n samples ascends pass@(n+1) / (n + 1) (`flow`), which rewards coverage; a KL
penalty bounds the squeeze, and its limit on the first task of the canonical tree has less pass@30 than the reference
for every weight.
"""

from theorybench.envs.core.evidence.claim import Claim
from theorybench.envs.tree.markov_chain.experiments import Gain, LimitLead, Metric, Training, first_task_claim

#: The paper's n.
REJECT_EASY = Training(reject_easy=5)
#: Few runs of many queries: reject-easy takes six CoTs a question, so plain REINFORCE makes six times the updates.
EQUAL_QUERIES = (Training(reject_easy=5, seeds=8), Training(updates=6000, seeds=8))
#: Long training in large batches; the limits are those of policies on prefixes.
LONG_REJECT_EASY = Training(10.0, 1000, questions=80, policy="prefix", reject_easy=5, seeds=5)
LONG_KL = Training(2.0, 1000, questions=64, policy="prefix", kl=1.0, seeds=16)

_FLOW = "theta_{i+1} = theta_i + .05 E[(1 - M)^5 grad M]"

CLAIMS: tuple[Claim, ...] = (
    first_task_claim(
        "exploration",
        Metric("task_0/entropy", REJECT_EASY),
        source="exploration preserves",
        statement="Rejecting the questions that one of 5 samples solves keeps the CoTs diverse: entropy of the "
        "valid CoTs after "
        "1000 updates",
        falsified_by="training on every question, which squeezes",
        formula=f"entropy of the flow {_FLOW} at i = 1000",
        tolerance=0.004,
        tolerance_reason="the mean of runs at a finite step size is less than .004 off the flow",
    ),
    first_task_claim(
        "exploration-updates",
        Gain("task_0/retention", REJECT_EASY, Training()),
        source="exploration preserves",
        statement="At equal updates reject-easy keeps more mass on the hard valid CoTs than plain REINFORCE: the "
        "difference of "
        "retention",
        falsified_by="training on every question, which squeezes",
        formula=f"retention of the flow {_FLOW} less that of the flow of E[grad M], both at i = 1000",
        tolerance=0.01,
        tolerance_reason="the mean of runs at a finite step size is less than .01 off the flow",
    ),
    first_task_claim(
        "exploration-queries",
        Gain("task_0/retention", *EQUAL_QUERIES),
        source="exploration preserves, at the cost of a rejection",
        statement="At equal queries it keeps still more: plain REINFORCE has made six times the updates by then",
        falsified_by="training on every question, which squeezes",
        formula=f"retention of the flow {_FLOW} at i = 1000 less that of the flow of E[grad M] at i = 6000",
        tolerance=0.01,
        tolerance_reason="the mean of runs at a finite step size differs from the flow by less than .01",
    ),
    first_task_claim(
        "exploration-limit",
        LimitLead(6, LONG_REJECT_EASY),
        source="exploration preserves",
        statement="Trained for long, reject-easy with 5 samples reaches the optimum of pass@6: its lead over the "
        "reference",
        falsified_by="an objective without an eye for coverage, such as pass@1",
        formula="max over p of pass@6(p) - pass@6(pi)",
        tolerance=0.002,
        tolerance_reason="finite time and step size",
    ),
    first_task_claim(
        "exploration-coverage",
        LimitLead(30, LONG_REJECT_EASY),
        source="exploration preserves",
        statement="That policy is ahead of the reference with 30 tries as well: its lead in pass@30",
        falsified_by="an objective without an eye for coverage, such as pass@1",
        formula="pass@30(argmax of pass@6) - pass@30(pi)",
        tolerance=0.0005,
        tolerance_reason="finite time and step size",
    ),
    first_task_claim(
        "kl-early",
        Metric("task_0/retention", Training(kl=0.1)),
        source="a KL penalty slows the squeeze",
        statement="A penalty of weight .1 still leaves a quarter of the hard CoTs' mass after 1000 updates, 40 "
        "times what its "
        "limit has: stopping early is what preserves them",
        falsified_by="another weight of the penalty, or none",
        formula="retention of the flow theta_{i+1} = theta_i + .05 grad (E[M] - .1 KL(p || pi)) at i = 1000",
        tolerance=0.003,
        tolerance_reason="the mean of runs at a finite step size differs from the flow by less than .003",
    ),
    first_task_claim(
        "kl-limit",
        LimitLead(30, LONG_KL),
        source="a KL penalty bounds the squeeze",
        statement="The limit of a penalty is the base model tilted by exp(acc / beta); at weight 1 it is behind "
        "the reference "
        "with 30 tries: its lead in pass@30",
        falsified_by="another weight of the penalty, or reject-easy, which comes out ahead",
        formula="pass@30(p) - pass@30(pi), p(o) = pi(o) exp(acc(o) / beta) / Z, beta = 1",
        tolerance=0.0005,
        tolerance_reason="finite step size",
    ),
)
