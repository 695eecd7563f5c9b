"""Algorithms and cells of `astar_po.py`: what may be tuned on which ladder, and what a run cost."""

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Any

from theorybench.leaderboard.config import AgentEntry, EnvironmentEntry, Suite
from theorybench.leaderboard.matrix import Plan, plan
from theorybench.leaderboard.records import Record

TARGET = 0.95
BATCH = 64
#: A value for each ladder by name; "weight" stands for the KL term's, in units of the cell's.
Point = dict[str, Any]
Options = dict[str, Any]
#: Expected episodes, then minus the best score: the smaller the better.
Rank = tuple[float, float]
#: A screened variant is dropped where it takes so many times what the best one takes, or scores so much less.
MARGIN, SLACK = 1.3, 0.05
#: What all algorithms share, stated so that no default of theirs matters.
COMMON: Options = {
    "start": "initial",
    "optimizer": "adam",
    "max_gradient_norm": 1e6,
    "hidden_units": 64,
    "hidden_layers": 1,
    "episodes_per_update": BATCH,
}


@dataclasses.dataclass(frozen=True)
class Ladder:
    """Values of an option, in an order in which neighbours are alike.

    Attributes:
        values: in that order.
        start: the one that the search starts from.
        last: ends beyond which there is nothing.
    """

    values: tuple[Any, ...]
    start: Any
    last: tuple[Any, ...] = ()

    def neighbours(self, value: Any) -> tuple[Any, ...]:
        """Return the values next to one."""
        place = self.values.index(value)
        return self.values[max(place - 1, 0) : place] + self.values[place + 1 : place + 2]

    def at_end(self, value: Any) -> bool:
        """Whether a value is an end beyond which the search might have gone on."""
        return value in (self.values[0], self.values[-1]) and value not in self.last


STEPS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)


@dataclasses.dataclass(frozen=True)
class Contender:
    """An algorithm.

    Attributes:
        name: as registered.
        weights: its options that are the weight of the KL term.
        tuned: ladders of its own options, beside the step size's.
        relative: options whose ladders are in units of the KL term's weight.
        multiples: ladder of that weight, in units of the cell's, where the cell has none.
        fixed: all its other options.
    """

    name: str
    weights: tuple[str, ...]
    tuned: dict[str, Ladder]
    relative: tuple[str, ...] = ()
    multiples: Ladder | None = None
    fixed: Options = dataclasses.field(default_factory=dict)

    def ladders(self, cell: "Cell") -> dict[str, Ladder]:
        """Return what is tuned in a cell."""
        ladders = {"learning_rate": Ladder(STEPS, cell.first_step), **self.tuned}
        multiples = cell.multiples or self.multiples
        if multiples and self.relative:  # least squares on the log-ratio itself: no weight, no algorithm
            multiples = dataclasses.replace(multiples, values=tuple(value for value in multiples.values if value > 0))
        return {**ladders, "weight": multiples} if multiples else ladders

    def start(self, cell: "Cell") -> Point:
        """Return where the search starts."""
        return {name: ladder.start for name, ladder in self.ladders(cell).items()}

    def options(self, cell: "Cell", point: Point) -> Options:
        """Return every option of the algorithm at a point."""
        weight = cell.weight * point.get("weight", 1.0)
        own = {
            name: value * weight if name in self.relative else value
            for name, value in point.items()
            if name != "weight"
        }
        return {**COMMON, **self.fixed, **dict.fromkeys(self.weights, weight), **own, "policy": cell.policy}


ITERATIONS = Ladder((1, 2, 4, 8), 1, last=(1,))
ASTAR_PO = Contender(
    "astar-po",
    ("beta_2",),
    {"reference_samples": Ladder((1, 2, 4, 8, 16, 32, 64), 8, last=(1,)), "beta_1": Ladder((0.3, 1, 3, 10), 1)},
    relative=("beta_1",),
    fixed={"first_stage": 0.9},
)
PPO = Contender(
    "ppo",
    ("kl",),
    {"epochs": Ladder((1, 2, 4, 8), 4, last=(1,)), "critic_learning_rate": Ladder((0.01, 0.03, 0.1, 0.3, 1.0), 0.1)},
    fixed={
        "clip": 0.2,
        "advantage": "gae",
        "gae_lambda": 0.95,
        "process_stage": 0.2,
        "minibatches": 1,
        "normalize_advantages": True,
    },
)
GRPO = Contender(
    "grpo",
    ("beta",),
    {
        "num_iterations": ITERATIONS,
        "scale_rewards": Ladder(("none", "batch", "group"), "group", last=("none", "group")),
    },
    multiples=Ladder((0.0, 0.1, 0.3, 1.0, 2.0, 4.0), 1.0, last=(0.0,)),
    fixed={"group_size": 8, "epsilon": 0.2, "epsilon_high": 0.2, "loss_type": "grpo"},
)
RLOO = Contender(
    "rloo",
    ("beta",),
    {"group_size": Ladder((2, 4, 8, 16), 4, last=(2,)), "num_iterations": ITERATIONS},
    fixed={"epsilon": 0.2, "normalize_advantages": False},
)
REBEL = Contender(
    "rebel",
    ("beta",),
    {"num_iterations": Ladder((1, 2, 4, 8), 4, last=(1,)), "eta": Ladder((0.25, 1.0, 4.0, 16.0), 1.0)},
    fixed={"group_size": 2, "solver": "gradient", "ridge": 1e-6},
)
CONTENDERS = (ASTAR_PO, PPO, GRPO, RLOO, REBEL)


@dataclasses.dataclass(frozen=True)
class Cell:
    """A setting without its instance, a policy class and a budget.

    Attributes:
        name: for people, and of what the search found.
        env_id: of the setting.
        parameters: of the setting.
        weight: of the KL term.
        policy: the class.
        budget: episodes of a run.
        first_step: step size that the search starts from.
        multiples: ladder of the weight, in units of `weight`, where the objective does not fix it.
    """

    name: str
    env_id: str
    parameters: Options
    weight: float
    policy: str
    budget: int
    first_step: float
    multiples: Ladder | None = None

    def suite(self, instances: Iterable[int], contender: Contender, options: Options, **suite: Any) -> Plan:
        """Plan runs of a contender on instances of the cell."""
        environments = [
            EnvironmentEntry(id=self.env_id, parameters={**self.parameters, "instance": i}) for i in instances
        ]
        agents = [AgentEntry(agent=contender.name, hyperparameters=options)]
        return plan(
            Suite(name="astar-po", environments=environments, agents=agents, **{"budget": self.budget, **suite})
        )

    @property
    def prompts(self) -> int:
        """Prompts of the setting."""
        return int(self.parameters.get("num_questions") or self.parameters["num_prompts"])


def advantage(name: str, beta: float, policy: str = "prompt", budget: int = 2**14, **parameters: Any) -> Cell:
    """Make a cell of OptimalAdvantage: the weight of the KL term is that of its objective."""
    parameters = {"num_prompts": 32, "num_responses": 32, "beta": beta, **parameters}
    first = 0.3 if policy == "mlp" else 0.1
    return Cell(name, "TheoryBench/OptimalAdvantage-v0", parameters, beta, policy, budget, first)


def tree(policy: str, size: int, branches: int, budget: int) -> Cell:
    """Make a cell of the tree: its objective, pass@1, has no KL term, so that the weight is tuned as well."""
    shape = {"L": size, "M0": branches, "M": branches, "num_tasks": branches, "num_questions": 64}
    name, weights = f"tree of L = {size}, {policy}", Ladder((0.0, 0.1, 0.3, 1.0, 3.0), 0.3, last=(0.0,))
    first = 0.3 if policy == "mlp" else 0.1
    return Cell(name, "TheoryBench/TreeMarkovChain-v0", shape, 0.1, policy, budget, first, weights)


@dataclasses.dataclass(frozen=True)
class Cost:
    """What a run had spent when its score first was the target: interpolated, and at the scored policy after."""

    episodes: float
    kl: float
    steps: float
    scored_at: int


def cost(record: Record) -> Cost | None:
    """Return the cost of the target; None where it was not reached."""
    before = None
    for point in record.curve:
        if point.metrics["score"] >= TARGET:
            share, last = 1.0, before or point
            if before is not None:
                share = (TARGET - before.metrics["score"]) / (point.metrics["score"] - before.metrics["score"])
            spent = math.exp((1 - share) * math.log(last.episodes) + share * math.log(point.episodes))
            kl = (1 - share) * last.metrics["kl"] + share * point.metrics["kl"]
            return Cost(spent, kl, gradient_steps(record, spent), point.episodes)
        before = point
    return None


def gradient_steps(record: Record, episodes: float) -> float:
    """Return the steps of the policy within some episodes."""
    options: Options = {**record.hyperparameters, **record.parameters}
    prompts = options.get("num_questions") or options.get("num_prompts", 0)
    first_stage = prompts * options.get("reference_samples", 0)
    return (episodes - first_stage) / BATCH * options.get("epochs", options.get("num_iterations", 1))


def expected(costs: Sequence[float | None], budget: float) -> float:
    """Return all episodes, whole budgets (None) where the target was missed, over the runs that reach it."""
    found = [value for value in costs if value is not None]
    return (sum(found) + budget * (len(costs) - len(found))) / len(found) if found else math.inf


def episodes_of(records: Sequence[Record]) -> list[float | None]:
    """Return each run's episodes to the target, None where it was missed."""
    return [found.episodes if found else None for found in map(cost, records)]


def rank(records: Sequence[Record], budget: int) -> Rank:
    """Order variants by expected episodes; those that never reach the target by best score."""
    best = [max((point.metrics["score"] for point in record.curve), default=-math.inf) for record in records]
    return expected(episodes_of(records), budget), -sum(best) / len(best)


def close(one: Rank, best: Rank) -> bool:
    """Whether a screened variant is not far behind the best: by score, where the best one never reaches the target."""
    return one[0] <= MARGIN * best[0] if math.isfinite(best[0]) else one[0] < math.inf or one[1] <= best[1] + SLACK
