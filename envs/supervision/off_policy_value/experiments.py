"""Experiments on off-policy value: logs that are really drawn, least squares on their transitions, noisy solvers.

Nothing here knows the laws of `estimators.py`: an estimate is computed from the transitions of a log.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from theorybench.envs.core.evidence.experiments import Sampled
from theorybench.envs.core.evidence.interval import Interval, share_interval
from theorybench.envs.core.evidence.lab import Lab, seed_of
from theorybench.envs.core.finite.oracle import PointPolicy
from theorybench.envs.supervision.off_policy_value.setting import CUTS, MULTIPLIERS, SLIPS

#: Logs that are held at a time.
TOGETHER = 200
#: Step size of noisy solvers: their stationary law is that of small steps to first order.
STEP_SIZE = 0.1
#: An estimator: a multiplier, None for residual regression, or "pairs" for one that is given two next states.
Estimator = float | str | None


class Log(NamedTuple):
    """Some logs of n transitions from every cell of a corridor, the goal being state L."""

    length: int  # L
    discount: float
    after: np.ndarray  # int64 (logs, m, n), next states
    reward: np.ndarray  # float64 (logs, m, n)

    @property
    def inputs(self) -> np.ndarray:
        """The indicator of the cell less the discounted one of the cell that is visited next: (logs, m, n, m)."""
        cells = 2 * self.length
        x = np.zeros((*self.after.shape, cells + 2))
        np.put_along_axis(x, (2 * self.after + 1)[..., None], -self.discount, axis=3)
        x = x[..., :cells]  # nothing follows the goal
        x[:, np.arange(cells), :, np.arange(cells)] += 1
        return x


def draw(length: int, slip: float, discount: float, noise: float, n: int, logs: int, rng: np.random.Generator) -> Log:
    """Draw logs: n transitions from every cell; the goal pays 1, and rewards carry normal noise."""
    state, action = np.divmod(np.arange(2 * length), 2)
    shape = logs, 2 * length, n
    replaced, other = rng.random(shape) < slip, rng.integers(2, size=shape)
    done = np.where(replaced, other, action[:, None])
    after = np.where(done == 1, state[:, None] + 1, np.maximum(state - 1, 0)[:, None])
    reward = (after == length) + noise * rng.standard_normal(shape)
    return Log(length, discount, after, reward)


def residual_fit(log: Log) -> np.ndarray:
    """Fit values by least squares of rewards on all transitions: float64 (logs, m)."""
    logs, cells = log.after.shape[:2]
    x, y = log.inputs.reshape(logs, -1, cells), log.reward.reshape(logs, -1, 1)
    turned = x.swapaxes(1, 2)
    return np.asarray(np.linalg.solve(turned @ x, turned @ y)[..., 0])


def two_stage_fit(log: Log, multiplier: float, ridge: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fit values with the means of cells, by the penalty problem's own quadratic form.

    Returns:
        The values (logs, m), the Hessian of the form that an outer step descends, and the Gram matrix of the means,
        (logs, m, m) each.
    """
    means, reward = log.inputs.mean(axis=2), log.reward.mean(axis=2)[..., None]
    cells = means.shape[2]
    turned = means.swapaxes(1, 2) / cells
    # With w at its least, F2 + lambda (F1 - min F1) is so much of the squared mean residual.
    share = (multiplier**2 + multiplier) / (1 + multiplier) ** 2
    hessian = share * (turned @ means) + ridge * np.eye(cells)
    return np.linalg.solve(hessian, share * (turned @ reward))[..., 0], hessian, turned @ means


def settled(hessian: np.ndarray, gram: np.ndarray, multiplier: float, solver_noise: float) -> np.ndarray:
    """Return where noisy outer steps settle around a fit: the covariance (logs, m, m) of their stationary law.

    A step is q -= eta (H (q - fit) + lambda delta times noise of covariance `gram`), eta delta^2 / 2 = `solver_noise`.
    The covariance after twice as many steps follows from that after so many, until nothing changes.
    """
    keep = np.eye(hessian.shape[-1]) - STEP_SIZE * hessian
    total = STEP_SIZE**2 * multiplier**2 * (2 * solver_noise / STEP_SIZE) * gram
    while np.abs(keep).max() > 1e-9:
        total, keep = total + keep @ total @ keep.swapaxes(1, 2), keep @ keep
    return np.asarray(total)


def pairs_fit(log: Log) -> np.ndarray:
    """Fit values to products of the residuals of two transitions of the same cell: the first half by the second."""
    x, half = log.inputs, log.after.shape[2] // 2
    one, two = x[:, :, :half], x[:, :, half:]
    left = np.einsum("lcni,lcnj->lij", one, two)
    right = np.einsum("lcni,lcn->li", one, log.reward[:, :, half:])
    right += np.einsum("lcni,lcn->li", two, log.reward[:, :, :half])
    return np.asarray(np.linalg.solve(left + left.swapaxes(1, 2), right[..., None])[..., 0])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Estimates of the candidate's value on logs; what the setting gives may be given otherwise."""

    estimator: Estimator  # which one
    slip: float = 0.4
    n: int = 64  # transitions from every cell; of pairs so many pairs
    logs: int = 400
    noise: float | None = 0.0  # of rewards; None for the setting's
    ridge: float | None = None  # None for the setting's
    solver_noise: float | None = 0.0  # None for the setting's
    length: int | None = None  # None for the setting's

    def here(self, setting: Any) -> "Evaluation":
        """Fill in what the setting gives."""
        own = {"noise": setting.reward_noise, "ridge": setting.ridge, "solver_noise": setting.solver_noise}
        own["length"] = setting.length
        return dataclasses.replace(self, **{name: x for name, x in own.items() if getattr(self, name) is None})

    def __call__(self, setting: Any, seed: int) -> np.ndarray:
        """Draw logs and estimate, for a reward of 1 at the goal: float64 (logs,)."""
        own, rng = self.here(setting), np.random.default_rng([seed, 251114710])
        assert own.length is not None and own.noise is not None
        found, many = [], 2 * own.n if own.estimator == "pairs" else own.n
        for first in range(0, own.logs, TOGETHER):
            count = min(TOGETHER, own.logs - first)
            log = draw(own.length, own.slip, setting.discount, own.noise, many, count, rng)
            found.append(own.estimate(log, rng))
        return np.concatenate(found)

    def estimate(self, log: Log, rng: np.random.Generator) -> np.ndarray:
        """Estimate from logs: float64 (logs,)."""
        if self.estimator is None:
            return residual_fit(log)[:, 1]
        if isinstance(self.estimator, str):
            return pairs_fit(log)[:, 1]
        assert self.ridge is not None and self.solver_noise is not None
        fit, hessian, gram = two_stage_fit(log, self.estimator, self.ridge)
        if not self.solver_noise:
            return np.asarray(fit[:, 1])
        spread = settled(hessian, gram, self.estimator, self.solver_noise)[:, 1, 1]
        return np.asarray(fit[:, 1] + np.sqrt(spread) * rng.standard_normal(len(fit)))


def true_values(length: int, slip: float, discount: float) -> np.ndarray:
    """Return what the candidate earns from each cell, by sweeps until nothing changes: float64 (m,)."""
    state, action = np.divmod(np.arange(2 * length), 2)
    right = np.where(action == 1, 1 - slip / 2, slip / 2)
    value = np.zeros(length + 1)
    for _ in range(100_000):
        ahead, back = discount * value[state + 1], discount * value[np.maximum(state - 1, 0)]
        cells = right * (ahead + (state + 1 == length)) + (1 - right) * back
        old, value = value, np.append(cells[1::2], 0.0)
        if np.abs(value - old).max() < 1e-14:
            break
    return cells


@dataclasses.dataclass(frozen=True, kw_only=True)
class Estimated(Sampled):
    """Mean over logs of a number that an estimate gives, and the truth: the estimate itself, where nothing is said."""

    evaluation: Evaluation
    number: Callable[[np.ndarray, float], np.ndarray] = lambda found, truth: found

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Return the numbers, float64 (logs,)."""
        own = self.evaluation.here(lab.setting)
        truth = true_values(own.length, own.slip, lab.setting.discount)[1]  # type: ignore[arg-type]
        return self.number(own(lab.setting, seed), float(truth))


@dataclasses.dataclass(frozen=True, kw_only=True)
class SquaredErrors(Sampled):
    """How much larger the mean squared error of one estimator is than that of another, over the canonical slips."""

    evaluations: tuple[Evaluation, Evaluation]  # on the same logs

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Return the differences, float64 (logs,)."""
        errors = [squared_errors(own, lab.setting, seed) for own in self.evaluations]
        return np.asarray((errors[0] - errors[1]).mean(axis=0))


def squared_errors(evaluation: Evaluation, setting: Any, seed: int) -> np.ndarray:
    """Return the squared errors of estimates at each of the canonical slips: float64 (slips, logs)."""
    found = []
    for number, slip in enumerate(SLIPS):
        own = dataclasses.replace(evaluation, slip=slip).here(setting)
        truth = true_values(own.length, slip, setting.discount)[1]  # type: ignore[arg-type]
        found.append((own(setting, seed * len(SLIPS) + number) - truth) ** 2)
    return np.array(found)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ordered(Sampled):
    """How often corridors are ranked by mean estimates exactly as by their values, or the other way round."""

    evaluation: Evaluation  # its logs are those of a ranking, at each slip
    rankings: int = 24
    opposite: bool = False

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Rank: bool (rankings,)."""
        means = []
        for number, slip in enumerate(SLIPS):
            own = dataclasses.replace(self.evaluation, slip=slip, logs=self.rankings * self.evaluation.logs)
            found = own(lab.setting, seed * len(SLIPS) + number)
            means.append(found.reshape(self.rankings, -1).mean(axis=1))
        steps = np.diff(np.array(means), axis=0)  # values fall with the slip
        return np.asarray((steps > 0 if self.opposite else steps < 0).all(axis=0))

    def summary(self, found: np.ndarray) -> Interval:
        """Return the share."""
        return share_interval(found)


@dataclasses.dataclass(frozen=True, kw_only=True)
class AtTheTruth(Sampled):
    """Mean over logs of the risk at the true values, or of its slope as all values are scaled up.

    The risk is the mean of the squared residual, or, with `pairs`, of the product of the residuals of two transitions
    from the same cell.
    """

    slope: bool = False
    pairs: bool = False
    slip: float = 0.4
    n: int = 64
    logs: int = 400

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Draw logs: float64 (logs,)."""
        setting, rng = lab.setting, np.random.default_rng([seed, 2, 251114710])
        true = true_values(setting.length, self.slip, setting.discount)
        found = []
        for _ in range(self.logs // TOGETHER):
            log = draw(setting.length, self.slip, setting.discount, 0.0, self.n, TOGETHER, rng)
            fitted = log.inputs @ true
            left = log.reward - fitted
            other = (slice(None), slice(None), slice(None, None, -1)) if self.pairs else ...
            if self.slope:
                found.append(-(left * fitted[other] + left[other] * fitted).mean(axis=(1, 2)))
            else:
                found.append((left * left[other]).mean(axis=(1, 2)))
        return np.concatenate(found)


@dataclasses.dataclass(frozen=True, kw_only=True)
class NoisySteps(Sampled):
    """How far first-order outer steps with noisy inner solutions scatter around their fit: squares of the first value.

    Each step takes two inner solutions, w at the least of F2 + lambda F1 and v at the least of F1, which both miss a
    little, and moves the values down lambda (grad F1(w, .) - grad F1(v, .)) and the ridge.
    """

    multiplier: float
    solver_noise: float = 1.0  # eta delta^2 / 2
    slip: float = 0.4
    chains: int = 1000
    times: float = 4.0  # how many times the slowest direction forgets its start

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Run chains: float64 (chains,)."""
        setting, rng = lab.setting, np.random.default_rng([seed, 3, 251114710])
        log = draw(setting.length, self.slip, setting.discount, 0.0, 4096, 1, rng)
        means, reward = log.inputs.mean(axis=2)[0], log.reward.mean(axis=2)[0]
        fit, hessian, _ = (part[0] for part in two_stage_fit(log, self.multiplier, setting.ridge))
        cells, factor = len(reward), self.multiplier
        miss = np.sqrt(2 * self.solver_noise / STEP_SIZE * cells / 2)  # of each inner solution
        q = np.tile(fit, (self.chains, 1))
        for _ in range(int(self.times / (2 * STEP_SIZE * np.linalg.eigvalsh(hessian)[0]))):
            f = q @ means.T
            w = (reward + factor * f) / (1 + factor) + miss * rng.standard_normal(f.shape)
            v = f + miss * rng.standard_normal(f.shape)
            q = q - STEP_SIZE * (factor * (v - w) @ means / cells + setting.ridge * q)
        return np.asarray((q[:, 1] - fit[1]) ** 2)


def furthest_reading(lab: Lab, seed: int, parameters: dict[str, Any], logs: int = 6000) -> float:
    """Return the largest total variation between a law of readings in the table and readings of estimates on logs.

    Args:
        lab: of a canonical setting.
        seed: of the logs.
        parameters: of the setting, beside those of the lab.
        logs: of each estimator, at the last two slips and both sizes, with a reward of 1 at the goal.
    """
    setting, worst = lab.at(**parameters).setting, 0.0
    today, sizes = setting.today(setting.length), (setting.small, setting.large)
    for number, slip in ((2, SLIPS[2]), (3, SLIPS[3])):
        for action in range(2 * len(MULTIPLIERS)):
            own = Evaluation(
                estimator=MULTIPLIERS[action // 2],
                slip=slip,
                n=sizes[action % 2],
                logs=logs,
                noise=None,
                solver_noise=None,
            )
            found = own(setting, seed_of(seed, number, action))
            reached = (found[:, None] / today >= np.array(CUTS)).sum(axis=1)
            law = setting.readings[1, action, 3 * number + 2]
            worst = max(worst, np.abs(np.bincount(reached, minlength=len(law)) / logs - law).sum() / 2)
    return worst


def descents(lab: Lab, seed: int, multipliers: Sequence[float], logs: int, **options: Any) -> tuple[Any, Any]:
    """Estimate by the paper's algorithm, F2BMLD, on logs of 64 transitions a cell without reward noise.

    Args:
        lab: estimates from bare transitions.
        seed: of the logs.
        multipliers: lambda, each on all of the logs.
        logs: how many there are.
        options: hyper-parameters of the algorithm.

    Returns:
        Its estimates, float64 (multipliers, logs), and those of two-stage least squares, (logs,).
    """
    setting = lab.setting
    length, rng = setting.length, np.random.default_rng([seed, 4, 251114710])
    log = draw(length, 0.4, setting.discount, 0.0, 64, logs, rng)
    state, action = np.divmod(np.repeat(np.arange(2 * length), log.after.shape[2]), 2)
    forward, start, found = np.tile([0.0, 1.0], (length, 1)), np.zeros(1, np.int64), []
    for after, reward in zip(log.after, log.reward, strict=True):
        after = np.where(after == length, -1, after).ravel()
        bare = {"rows": state, "actions": action, "rewards": reward.ravel(), "next_rows": after, "starts": start}
        bare["discount"] = setting.discount
        own = [lab.estimate(forward, bare, "f2bmld", multiplier=one, **options).value for one in multipliers]
        found.append([*own, lab.estimate(forward, bare, "2sls").value])
    *by_multiplier, closed = np.array(found).T
    return np.array(by_multiplier), closed


@dataclasses.dataclass(frozen=True, kw_only=True)
class LogsWorth(Sampled):
    """How much more one earns who evaluates once in one way than in another, and deploys on readings from 4 on."""

    looks: tuple[int, int]  # actions
    rounds: int = 2000  # episodes of every prompt

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Play: float64 (rounds,)."""
        setting, earned = lab.setting, []
        prompts = np.tile(np.arange(setting.num_prompts), self.rounds)
        for number, look in enumerate(self.looks):
            actions = np.tile(setting.rule_actions(look), len(setting.lengths))
            policy = PointPolicy(setting, "nodes", actions)
            played = lab.simulate(policy, len(prompts), seed_of(seed, number), prompts=prompts)
            earned.append(played.rewards.reshape(self.rounds, -1).mean(axis=1))
        return np.asarray(earned[0] - earned[1])
