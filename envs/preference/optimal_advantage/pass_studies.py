"""A figure about pass@K after A*-PO: with and without its filter, on prompts with p = 0.1 and prompts with p = 0.

Theory is `pass_at_k`. Points are what trained policies reach, by the oracle, and right
responses counted in roll-outs of fixed policies, cut into as many parts as there are runs.
"""

from typing import Any

import numpy as np

from theorybench.envs.core.evidence.interval import mean_interval
from theorybench.envs.core.evidence.lab import Lab
from theorybench.envs.core.evidence.study import Axis, Cell, Chart, Column, Series, Study, StudyResult, Table, measured
from theorybench.envs.preference.optimal_advantage.experiments import ONE_PROMPT, Trained, count_passes
from theorybench.envs.preference.optimal_advantage.optimal_value import optimal_success
from theorybench.envs.preference.optimal_advantage.pass_at_k import filtered_pass, pass_at, reference_tries

#: The K at which points stand, and where theory is drawn.
KS = (1, 2, 4, 8, 16, 32, 64, 128)
DRAWN_KS = tuple(np.unique(np.geomspace(1, 128, 60).round()).tolist())
#: Temperatures of the curves of pass@K, of the curves of tries, and of the table.
TRAINED_BETAS, DRAWN_BETAS, TABLE_BETAS = (0.25, 0.5), (0.25, 0.5, 1.0), (0.1, 0.2, 0.25, 0.5, 1.0)
#: Chances of the reference, whole numbers of 10 responses, and where theory is drawn.
CHANCES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
DRAWN_CHANCES = tuple(i / 100 for i in range(1, 76))
#: Samples of stage 1, of which the filter asks that one is right; draws of it for each run.
SAMPLES, DRAWS = 8, 1024
#: Responses of each run and policy from which one try is compared with one of the reference.
RESPONSES = 2**15
#: How policies are trained.
TRAINING = Trained(samples=SAMPLES, episodes=128, learning_rate=0.02)


def pass_at_k(lab: Lab, seed: int, seeds: int) -> StudyResult:
    """Show pass@K against K for the reference and for A*-PO, and the tries that one try is worth against p."""
    setting = lab.setting
    solvable = setting.chances > 0
    p, share = float(setting.chances.max()), float(solvable.mean())
    counted = np.stack([count_passes(lab, lab.oracle.reference_policy, k, seeds * 128, _key(seed, k)) for k in KS])
    series = [
        measured("reference", KS, counted.reshape(len(KS), len(solvable), seeds, -1).mean((1, 3)).T, style="simulated"),
        Series("reference", "predicted", DRAWN_KS, [share * float(pass_at(p, k)) for k in DRAWN_KS]),
    ]
    for number, beta in enumerate(TRAINED_BETAS):
        there, star, name = lab.at(beta=beta), float(optimal_success(p, beta)), f"A*-PO, beta = {beta:g}"
        policies = Trained(**{**vars(TRAINING), "seeds": seeds}).policies(there.setting, there, seed)
        after = np.stack([there.oracle.chances(policy) for policy in policies])
        passed = np.stack([pass_at(after, k) for k in KS])
        series.append(measured(name, KS, passed.mean(axis=2).T))
        series.append(Series(name, "predicted", DRAWN_KS, [share * float(pass_at(star, k)) for k in DRAWN_KS]))
        if number == 0:
            name += ", filter"
            seen = count_passes(there, there.oracle.reference_policy, SAMPLES, seeds * DRAWS, _key(seed, 999))
            kept = seen.reshape(len(solvable), seeds, DRAWS).mean(axis=2).T
            stays = np.stack([pass_at(setting.chances, k) for k in KS])[:, None]
            mixed = kept * passed + (1.0 - kept) * stays
            exact = [share * float(filtered_pass(p, star, SAMPLES, int(k))) for k in DRAWN_KS]
            series += [measured(name, KS, mixed.mean(axis=2).T), Series(name, "predicted", DRAWN_KS, exact)]
    charts = (
        Chart(
            "pass@K before and after A*-PO",
            Axis("tries K", "log", ticks=KS),
            Axis("pass@K"),
            tuple(series),
            f"p = {p:g} on {share:.0%} of the prompts, 0 on the others: the limit of all curves is {share:g}. Filter: "
            f"prompts of which none of {SAMPLES} samples was right stay at the reference.",
        ),
        Chart(
            "Tries that one try of the optimum is worth",
            Axis("p, the chance of the reference"),
            Axis("tries of the reference", "log", ticks=(1, 2, 4, 8, 16, 32)),
            tuple(_tries(lab, seed, seeds)),
            "At p = 0 each curve begins at e^(1/beta).",
        ),
    )
    return StudyResult(tables=(_table(lab, p, seed, seeds),), charts=charts, notes=_notes(p))


def _tries(lab: Lab, seed: int, seeds: int) -> list[Series]:
    series = []
    for beta in DRAWN_BETAS:
        places = [lab.at(beta=beta, accuracy=p, zero_share=0.0, num_prompts=1) for p in CHANCES]
        found = [_counted_tries(there, _key(seed, 1000 + i), seeds) for i, there in enumerate(places)]
        series.append(measured(f"beta = {beta:g}", CHANCES, np.stack(found, axis=1), style="simulated"))
        exact = reference_tries(np.array(DRAWN_CHANCES), beta)
        series.append(Series(f"beta = {beta:g}", "predicted", DRAWN_CHANCES, exact.tolist()))
    return series


def _counted_tries(lab: Lab, seed: int, seeds: int) -> np.ndarray:
    """Give ln of the share of wrong responses of the optimum over that of the reference's, each part: (seeds,)."""
    pair = lab.oracle.optimal_policy, lab.oracle.reference_policy
    right = (lab.simulate(policy, seeds * RESPONSES, seed + i).rewards for i, policy in enumerate(pair))
    after, before = (np.log(1.0 - rewards.reshape(seeds, -1).mean(axis=1)) for rewards in right)
    return after / before


def _table(lab: Lab, p: float, seed: int, seeds: int) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for number, beta in enumerate(TABLE_BETAS):
        there = lab.at(beta=beta, zero_share=0.0, num_prompts=1)
        counted = mean_interval(_counted_tries(there, _key(seed, 2000 + number), seeds))
        tries = float(reference_tries(p, beta))
        rows.append((beta, float(optimal_success(p, beta)), tries, counted, float(np.exp(1 / beta))))
    columns = (Column("beta", "g"), *(Column(head, ".3f") for head in ("P*", "tries", "tries counted", "e^(1/beta)")))
    note = f"p = {p:g}. The reference's pass@K is below P* exactly for K below the number of tries."
    return Table("One try of the optimum, in tries of the reference", columns, tuple(rows), note)


def _notes(p: float) -> tuple[str, ...]:
    beta = TRAINED_BETAS[0]
    star, tries = float(optimal_success(p, beta)), float(reference_tries(p, beta))
    bound = float(pass_at(p, SAMPLES + 1))
    return (
        f"At p = {p:g} and beta = {beta:g} one try after A*-PO is right with probability {star:.3f}, which the "
        f"reference reaches in {int(np.ceil(tries))} tries.",
        f"With the filter one try reaches {float(filtered_pass(p, star, SAMPLES, 1)):.3f}, and with a beta near 0 "
        f"{bound:.3f}: the reference's pass@{SAMPLES + 1}.",
        "Where p = 0 nothing is ever solved, whatever K is.",
    )


def _key(seed: int, number: int) -> int:
    return int(np.random.SeedSequence((seed, number)).generate_state(1)[0])


PARAMETERS: dict[str, Any] = {**ONE_PROMPT, "num_responses": 10, "num_prompts": 8, "zero_share": 0.25, "beta": 0.25}
PASS_STUDY = Study(
    id="advantage-pass-at-k",
    source="arXiv 2505.20686, pass@K, ours",
    title="pass@K before and after A*-PO: when the reference's is exceeded",
    text="TRL's documentation says that A*-PO cannot exceed the reference's pass@K. That is so where p = 0, and in the "
    "limit of many tries. At every finite K the optimum is above the reference; one try of it is worth up to "
    "e^(1 / beta) tries. What does set a limit is the filter, which drops prompts that no sample solved: in a table "
    "pass@K is then at most pass@(N + K) of the reference.",
    run=pass_at_k,
    parameters=PARAMETERS,
)
