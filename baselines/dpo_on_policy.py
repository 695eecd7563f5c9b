"""On-policy DPO: label pairs of the current policy, fit, repeat (arXiv 2601.08421; loss of Rafailov et al. 2023).

Implementation details:

1. Rounds of equal size. In each, both responses of a pair are drawn from the *current* policy: the sampler moves and
   the reference stays, so that coverage improves from round to round. Each fit sees the pairs of its own round alone.
2. Loss of a pair: -ln sigma(beta (ln pi/pi_ref (winner) - ln pi/pi_ref (loser))).
3. `solver="newton"` (linear-softmax class): each round's loss is minimised exactly, from theta_t, with a ridge of 1e-6
   that pulls to theta_t (so a coordinate without information stays) and a box |theta_i| <= 20. `ridge_to="reference"`
   pulls to theta = 0 instead: the learner then explores by itself and the phase transition in batch size disappears.
   `solver="gradient"` (any class): `epochs` full-batch gradient steps on each round's pairs.
4. A comparison costs one episode, whatever it compares.

It logs the policy after each round, and no scalars.

Where it deviates: the exact fit takes the place of the paper's idealised minimiser, and gradient steps that of its
training of language models; the number of rounds is fixed.
"""

import dataclasses

import numpy as np
import torch

from theorybench.agents.bradley_terry import aggregate_pairs, fit_bradley_terry
from theorybench.agents.gradient import GradientAgent
from theorybench.agents.rollout import Episodes
from theorybench.agents.samples import Samples
from theorybench.agents.softmax import LinearSoftmax
from theorybench.agents.trainer import Trainer
from theorybench.envs.core.errors import ParameterError
from theorybench.envs.core.policy import SettingPolicy
from theorybench.envs.core.validation import choice, integer, real


@dataclasses.dataclass(frozen=True, kw_only=True)
class DPOOnPolicy(GradientAgent):
    """DPO whose pairs come from the policy it is training."""

    feedback = "preference"

    rounds: int = integer(6, 1, 10_000, "rounds of labelling; the budget is split equally")
    beta: float = real(1.0, 0.0, 1000.0, "KL coefficient of the loss", open_low=True)
    solver: str = choice(
        "auto",
        ("auto", "newton", "gradient"),
        "exact fit (linear class only) or gradient steps; auto: exact where it can",
    )
    ridge: float = real(1e-6, 0.0, 1000.0, "newton: strength of the ridge, in units of the summed loss", open_low=True)
    ridge_to: str = choice("current", ("current", "reference"), "newton: where the ridge pulls to")
    epochs: int = integer(100, 1, 1_000_000, "gradient: steps on the pairs of each round")

    @property
    def num_envs(self) -> int:  # type: ignore[override]
        """Pairs that are labelled at a time."""
        return 256

    def run(self, trainer: Trainer) -> None:
        """Label and fit, `rounds` times."""
        rounds = min(self.rounds, trainer.remaining)
        for left in range(rounds, 0, -1):
            self.fit(trainer, trainer.collect(trainer.remaining // left))

    def fit(self, trainer: Trainer, episodes: Episodes) -> None:
        """Fit the policy to labelled pairs, starting where it is."""
        data = trainer.samples(episodes)
        linear = isinstance(trainer.softmax, LinearSoftmax)
        if self.solver == "newton" or (self.solver == "auto" and linear):
            trainer.set_parameters(self.newton(trainer, data))
        else:
            for _ in range(self.epochs):
                trainer.update(self.loss, data, log=False)
        trainer.report()

    def loss(self, log_probs: torch.Tensor, data: Samples) -> torch.Tensor:
        """Mean logistic loss of the pairs."""
        ratios = (log_probs - data.reference)[:, 0]
        margins = self.beta * (ratios[:, 0] - ratios[:, 1])
        return -torch.nn.functional.logsigmoid(2.0 * data.rewards * margins).mean()

    def newton(self, trainer: Trainer, data: Samples) -> np.ndarray:
        """Minimise the summed loss of each run exactly: theta (R, d).

        Raises:
            ParameterError: the policy class is not linear.
        """
        softmax = trainer.softmax
        if not isinstance(softmax, LinearSoftmax):
            raise ParameterError("solver", self.solver, "'gradient' for this policy class", "Or pass policy='linear'.")
        reference = softmax.fit(SettingPolicy(trainer.setting, "reference"))
        current = trainer.parameters.detach().numpy()
        prompts, responses = softmax.features.shape[:2]
        first, second = data.actions[:, :, 0].numpy().transpose(2, 0, 1)
        codes = (data.encoded[:, :, 0].numpy() * responses + first) * responses + second
        fitted = []
        for run in range(trainer.runs):
            # Pairs of the same two responses are counted before the rest merges what has equal differences.
            pairs, inverse = _distinct(codes[run], prompts * responses**2)
            counts = np.bincount(inverse, minlength=len(pairs)).astype(np.float64)
            wins = np.bincount(inverse, data.rewards[run].numpy() + 0.5, len(pairs))
            left, right = np.divmod(pairs, responses)
            prompt, left = np.divmod(left, responses)
            differences = softmax.features[prompt, left] - softmax.features[prompt, right]
            rows, labels, counts = aggregate_pairs(differences, wins / counts, counts)
            # The loss sees ln pi/pi_ref, so that theta is measured from the reference's.
            start = current[run] - reference if self.ridge_to == "current" else np.zeros_like(reference)
            theta = fit_bradley_terry(
                rows, labels[None], start[None], weights=counts[None], ridge=self.ridge, beta=self.beta
            )
            fitted.append(reference + theta[0])
        return np.stack(fitted)


def _distinct(codes: np.ndarray, high: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct codes below `high` and each code's place among them, by counting where that beats sorting."""
    if high > 4 * len(codes):
        return np.unique(codes, return_inverse=True)
    present = np.zeros(high, bool)
    present[codes] = True
    return np.flatnonzero(present), (np.cumsum(present) - 1)[codes]
