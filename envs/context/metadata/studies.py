"""Figures on metadata: when labels pay, what they tell of symbols, what was bought of a text, what policies earn."""

import dataclasses
from typing import Any

import numpy as np

from theorybench.envs.context.metadata.experiments import LabelWorth, Learned, bought, likely
from theorybench.envs.core.environments.canvas import BAD, EDGE, GIVEN, INK, QUIET, SAID
from theorybench.envs.core.environments.language import begin
from theorybench.envs.core.environments.render import figure_svg
from theorybench.envs.core.evidence.interval import mean_interval
from theorybench.envs.core.evidence.lab import Lab, run_seeds
from theorybench.envs.core.evidence.study import (
    Axis,
    Chart,
    Column,
    Level,
    Picture,
    Series,
    Study,
    StudyResult,
    Table,
    measured,
)

#: Instances that are drawn beside each other.
OTHER = 10_000


@dataclasses.dataclass(frozen=True)
class SignFlip:
    """What all labels are worth to one who writes at once, by shown length, and what they cost."""

    texts: int = 100_000  # that a learner counts, and as many on which it is tested

    def __call__(self, lab: Lab, seed: int, seeds: int) -> StudyResult:
        """Train learners that count; compare them with the oracle."""
        charts = []
        for there in (lab, lab.at(instance=OTHER)):
            setting, oracle, series = there.setting, there.oracle, []
            lengths = range(1, setting.L - 1)
            model = oracle.evaluate(oracle.language_model)
            exact = {
                "writes what is right most often": [oracle.best_write(length) for length in lengths],
                "draws likely symbols": [model[f"length_{length}/grammatical"] for length in lengths],
            }
            learner = Learned(train=self.texts, test=self.texts, prediction=lambda oracle: 0.0)
            for (name, right), writer in zip(exact.items(), (learner.writer, likely), strict=True):
                runs = [learner.written(there, run, writer).mean(axis=1) for run in run_seeds(seed, seeds)]
                series.append(Series(name, "predicted", lengths, 1 - np.array(right)))
                series.append(measured(name, lengths, 1 - np.array(runs)))
            charts.append(
                Chart(
                    f"Instance {setting.instance}",
                    Axis("symbols that are shown", ticks=tuple(lengths)),
                    Axis("what all labels add to P(grammatical)"),
                    tuple(series),
                    levels=(Level(setting.D * setting.label_price, "price of all labels"),),
                    note="Above the line labels pay. A language model that draws would always want them.",
                )
            )
        return StudyResult(charts=tuple(charts))


@dataclasses.dataclass(frozen=True)
class Saved:
    """What labels save of the loss of each symbol, for learners that have seen few or many texts."""

    sizes: tuple[int, ...] = (3_000, 30_000, 300_000)  # texts that are counted
    test: int = 100_000  # fresh texts

    def __call__(self, lab: Lab, seed: int, seeds: int) -> StudyResult:
        """Train learners that count, with labels and without."""
        oracle, places = lab.oracle, range(1, lab.setting.L + 1)
        told = np.diff([oracle.information(length) for length in range(lab.setting.L + 1)])
        series, notes = [Series("mutual information", "predicted", places, told)], []
        for size in self.sizes:
            learner = LabelWorth(train=size, test=self.test, prediction=lambda oracle: 0.0)
            runs = np.array([learner.symbols(lab, run).mean(axis=0) for run in run_seeds(seed, seeds)])
            series.append(measured(f"{size:,} texts", places, runs, style="line"))
            found = mean_interval(runs.sum(axis=1))
            notes.append(f"With {size:,} texts labels save {found.value:.3f} bits; they tell {told.sum():.4f}.")
        chart = Chart(
            "What labels save",
            Axis("symbol of the text", ticks=tuple(places)),
            Axis("bits of loss"),
            tuple(series),
            note="Where few texts were seen, long beginnings are new to the learner that counts by label.",
        )
        return StudyResult(charts=(chart,), notes=tuple(notes))


@dataclasses.dataclass(frozen=True)
class Parse:
    """How texts of the optimum came about: shown, read, or written, with the labels that were bought."""

    texts: int = 3  # drawn

    def __call__(self, lab: Lab, seed: int, seeds: int) -> StudyResult:
        """Play the optimum; draw the derivations of texts for which it bought something and wrote something."""
        setting, drawn = lab.setting, list[Picture]()
        played = lab.simulate(lab.oracle.optimal_policy, 2_000, seed)
        states = begin(setting, played.prompts).state.hidden
        way, _ = np.nonzero(setting.texts.chance)
        seen: set[tuple[int, ...]] = set()
        for episode in np.flatnonzero(played.rewards > 0):
            steps = int(played.lengths[episode])
            actions = played.actions[episode, :steps]
            board = played.observations[episode, steps - 1].astype(np.int64) - setting.num_actions - 1
            if actions[-1] >= setting.q or not (actions == setting.q + 1).any():
                continue
            text = [*(board[: setting.L - 1] - 1).tolist(), int(actions[-1])]
            shown = int((played.observations[episode, 0, : setting.L] > setting.num_actions + 1).sum())
            source = int(board[-1]) or setting.L - 1
            known = int((board[setting.L : -1] > 0).sum())
            if tuple(text) in seen or (source == shown and not drawn):
                continue
            seen.add(tuple(text))
            labels = (way[states[episode]] >> np.arange(setting.D)[::-1] & 1).tolist()
            drawn.append(self._picture(setting, text, labels, known, shown, source))
            if len(drawn) == self.texts:
                break
        return StudyResult(pictures=tuple(drawn))

    def _picture(
        self, setting: Any, text: list[int], labels: list[int], known: int, shown: int, source: int
    ) -> Picture:
        """Draw one derivation, the first symbol on top."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7.2, 2.9))
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set_xlim(-2.6, setting.L)
        axes.set_ylim(-0.8, setting.D + 0.5)
        axes.axis("off")
        tree = derivation(setting.rules, labels, text)
        for level, symbols in enumerate(tree):
            wide = setting.L / len(symbols)
            for place, symbol in enumerate(symbols):
                x, y = (place + 0.5) * wide - 0.5, setting.D - level
                for child in (-0.25, 0.25) if level < setting.D else ():
                    axes.plot([x, x + child * wide], [y - 0.2, y - 0.8], color=EDGE, linewidth=1)
                face = "white" if level < setting.D else GIVEN if place < shown else BAD if place < source else SAID
                box = {"boxstyle": "round,pad=0.25", "facecolor": face, "edgecolor": EDGE}
                axes.text(x, y, setting.symbol_name(symbol), ha="center", va="center", fontsize=10, bbox=box)
            if level < setting.D:
                told = f"label {labels[level]}: " + ("bought" if level < known else "not bought")
                colour = INK if level < known else QUIET
                axes.text(-2.5, setting.D - level - 0.5, told, va="center", fontsize=9, color=colour)
        words = f"{shown} shown (blue), {source - shown} read (red), {setting.L - source} written (yellow)"
        axes.text(-2.5, -0.6, words, va="center", fontsize=9, color=QUIET)
        name = "".join(setting.symbol_name(symbol) for symbol in text)
        return Picture(f"{name}: {known} of {setting.D} labels bought", figure_svg(figure))


def derivation(rules: np.ndarray, labels: list[int], text: list[int]) -> list[list[int]]:
    """Return the symbols of each level from which a text came about, the first symbol first.

    Args:
        rules: int (D, 2, q, 2, 2).
        labels: the D labels.
        text: a text of that grammar.
    """

    def grown(symbol: int, level: int, part: list[int]) -> list[list[int]] | None:
        if level == len(rules):
            return [[symbol]] if part == [symbol] else None
        half = len(part) // 2
        for left, right in rules[level, labels[level], symbol].tolist():
            first, second = grown(left, level + 1, part[:half]), grown(right, level + 1, part[half:])
            if first is not None and second is not None:
                return [[symbol], *(one + two for one, two in zip(first, second, strict=True))]
        return None

    found = grown(0, 0, text)
    assert found is not None, "a text of the grammar has a derivation"
    return found


@dataclasses.dataclass(frozen=True)
class Prices:
    """What the optimum buys and reads as reading gets dearer."""

    prices: tuple[float, ...] = (0.0, 0.02, 0.04, 0.05, 0.06, 0.08, 0.1, 0.12, 0.16, 0.2)  # of a symbol
    played: tuple[float, ...] = (0.02, 0.05, 0.08, 0.12, 0.2)  # where episodes are played
    episodes: int = 10_000  # of a run

    def __call__(self, lab: Lab, seed: int, seeds: int) -> StudyResult:
        """Evaluate the optimum of each price exactly, and play it at some."""
        values = []
        for price in self.prices:
            oracle = lab.at(read_price=price).oracle
            values.append(oracle.evaluate(oracle.optimal_policy, ["labels", "read"]))
        labels, read = ([value[name] for value in values] for name in ("labels", "read"))
        runs = [
            [bought(lab, price, self.episodes, run).mean() for price in self.played] for run in run_seeds(seed, seeds)
        ]
        series = (
            Series("labels", "predicted", self.prices, labels),
            measured("labels", self.played, np.array(runs), style="simulated"),
            Series("symbols read", "predicted", self.prices, read),
        )
        x = Axis(f"price of a symbol; of a label {lab.setting.label_price:g}")
        note = "Of acts that are worth the same, reading comes first, then a label."
        return StudyResult(charts=(Chart("Labels in place of reading", x, Axis("mean of an episode"), series, note),))


@dataclasses.dataclass(frozen=True)
class Rules:
    """What rules and the optimum earn, exactly."""

    def __call__(self, lab: Lab, seed: int, seeds: int) -> StudyResult:
        """Evaluate them, on the setting and on another instance."""
        tables = []
        for there in (lab, lab.at(instance=OTHER)):
            oracle, rows = there.oracle, []
            names = (
                "mixture-lm",
                "never-metadata",
                "always-metadata",
                "metadata-if-short",
                "planner-greedy",
                "optimal",
            )
            for name in ("reference", *names):
                (policy,) = there.train(name, [seed], 1)
                values = oracle.evaluate(policy)
                shares = (values[key] for key in ("objective", "grammatical", "labels", "read"))
                ends = (values[f"length_{length}/objective"] for length in (1, there.setting.L - 2))
                rows.append((name, *shares, oracle.score(policy), *ends))
            heads = ("J", "grammatical", "labels", "read", "score", "J, 1 shown", f"J, {there.setting.L - 2} shown")
            columns = (Column("policy"), *(Column(head) for head in heads))
            tables.append(Table(f"Instance {there.setting.instance}", columns, tuple(rows)))
        return StudyResult(tables=tuple(tables))


_SOURCE = "arXiv 2504.17562"
STUDIES: tuple[Study, ...] = (
    Study(
        id="flip",
        source=f"{_SOURCE}, metadata after short and long prompts; as a decision, ours",
        title="When labels pay",
        text="After a short prompt all labels are worth more than they cost, after a long one less.",
        run=SignFlip(),
        seeds=5,
    ),
    Study(
        id="saved",
        source="ours",
        title="What labels save of the loss",
        text="With labels in sight a language model loses less, by their mutual information with each symbol.",
        run=Saved(),
        seeds=5,
    ),
    Study(
        id="parse",
        source="ours",
        title="What was bought of a text",
        text="Derivations of texts that the optimum finished: what was shown, read and written, and the labels it had.",
        run=Parse(),
        seeds=2,
    ),
    Study(
        id="prices",
        source="ours",
        title="Labels in place of reading",
        text="Where reading is cheap no label is bought; the dearer it is, the more of them.",
        run=Prices(),
        seeds=5,
    ),
    Study(
        id="metadata-policies",
        source="ours",
        title="What policies earn",
        text="Rules that practice suggests, the rule that the paper suggests, one-step look-ahead and the optimum.",
        run=Rules(),
        seeds=2,
        exact=True,
    ),
)
