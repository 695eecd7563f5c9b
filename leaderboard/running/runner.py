"""One run: train an agent under a budget, score it exactly on the way, and write down what happened.

What is wrong with the request (an unknown id, a parameter out of range, feedback that does not match) is raised. What
goes wrong with the agent is a result: a record whose status is not "ok" and whose `error` says what happened.
"""

import dataclasses
import datetime
import functools
import math
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from theorybench.agents.api.agent import can_batch_seeds
from theorybench.agents.api.budget import Budget
from theorybench.agents.api.harness import FRACTIONS, check_feedback, train
from theorybench.agents.api.loading import AgentSpec, agent_digest, resolve_agent
from theorybench.envs.core.errors import (
    AgentError,
    ConfigurationError,
    NonFiniteError,
    ParameterError,
    PolicyError,
    TargetReached,
    TheoryBenchError,
)
from theorybench.envs.core.oracle import Oracle
from theorybench.envs.core.registry import lookup, resolve_setting
from theorybench.envs.core.setting import Setting
from theorybench.leaderboard.records.identity import Identity, identify
from theorybench.leaderboard.records.kept import keep, listening
from theorybench.leaderboard.records.record import Record, make_record
from theorybench.leaderboard.running.provenance import (
    Stopwatch,
    git_commit,
    hardware,
    peak_memory,
    restart_peak_memory,
    versions,
    warm_up,
)

#: What an agent reports beside a policy stands under this prefix in its learning curve; all else there is exact.
REPORTED = "train/"
#: How far rounding takes a score above 1, how many standard errors an estimate may err, and how closely a score must be
#: what its objective says.
EXACT, SURE, AGREES = 1e-9, 6.0, 1e-6
#: Called with the share of the budget that is spent.
Progress = Callable[[float], None]


def run(env_id: str, agent: Any, *, seed: int = 0, budget: int | None = None, **parameters: Any) -> Record:
    """Train an agent once and score it.

    Args:
        env_id: a registered id, its short form, "module:ID" or "path/to/file.py:ID", with parameters in brackets where
            it has any: "TreeMarkovChain[pass_k=4]".
        agent: an object with `train`, or a reference: "rlvr", "rlvr[learning_rate=0.1]", "my_agent.py:MyAgent".
        seed: the only source of randomness.
        budget: episodes; None for the id's own default.
        parameters: of the setting; they win over those in brackets.

    Returns:
        The record, with the exact metrics at fractions of the budget (`curve`) and at the end (`metrics`, `score`).
        An agent that fails gives a record whose `status` is "failed" or "nonfinite" and whose `error` says why, and a
        warning.

    Raises:
        UnknownNameError: no such id or agent; the closest are suggested.
        ParameterError: a parameter, hyper-parameter, seed or budget out of its range.
        AgentError: no agent, or one that cannot learn from the setting's feedback.
        ConfigurationError: a reference that cannot be read or imported.
    """
    record = run_many(env_id, agent, [seed], budget=budget, parameters=parameters)[0]
    if record.status != "ok":
        warnings.warn(f"{record.agent} {record.status} on {record.env_id}: {record.error}", stacklevel=2)
    return record


def run_many(
    env_id: str,
    agent: Any,
    seeds: Sequence[int],
    *,
    budget: int | None = None,
    parameters: dict[str, Any] | None = None,
    batch_seeds: bool = True,
    fractions: Sequence[float] = FRACTIONS,
) -> list[Record]:
    """Train an agent once for each seed, together where it can, and score every run.

    Args:
        env_id: as in `run`.
        agent: as in `run`; one made from a reference is made afresh for each run that is trained alone.
        seeds: of the runs.
        budget: episodes of each run; None for the id's own default.
        parameters: of the setting.
        batch_seeds: train seeds together where the agent can.
        fractions: of the budget at which policies are scored, increasing, the last of them 1.

    Returns:
        One record for each seed. Where runs trained together fail, each is tried alone, so that only the culprit fails.

    Raises:
        the errors of `run`.
    """
    id, setting = resolve_setting(env_id, parameters)
    oracle_of(id, setting)
    spec = resolve_agent(agent)
    episodes = check_request(spec, id, seeds, budget)
    identity = identify(id, setting, spec, seed=seeds[0], budget=episodes)
    return train_and_score(spec, [identity.with_seed(seed) for seed in seeds], batch_seeds, fractions)


def check_request(agent: AgentSpec, env_id: str, seeds: Sequence[int], budget: int | None) -> int:
    """Check what is asked of an agent; return the episodes of a run.

    Raises:
        ParameterError: a seed or budget out of its range.
        AgentError: the agent cannot learn from the setting's feedback.
        ConfigurationError: a module that it needs is not installed.
    """
    episodes = lookup(env_id).budget if budget is None else budget
    for field, value, low in (("budget", episodes, 1), *(("seed", seed, 0) for seed in seeds)):
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value < 2**63:
            raise ParameterError(field, value, f"an integer >= {low}")
    if agent.missing:
        raise ConfigurationError(f"{agent.name}: {agent.missing}")
    check_feedback(agent.agent, env_id)
    return episodes


def train_and_score(
    agent: AgentSpec,
    runs: Sequence[Identity],
    batch_seeds: bool = True,
    fractions: Sequence[float] = FRACTIONS,
    progress: Progress | None = None,
    policies: Path | None = None,
) -> list[Record]:
    """Train runs that differ in their seeds, and score them: see `run_many`.

    Args:
        agent: that trains.
        runs: of registered environments.
        batch_seeds: train seeds together where the agent can.
        fractions: of the budget at which policies are scored.
        progress: told the share of the budget that is spent.
        policies: folder in which final policies are kept; None for nowhere.

    Raises:
        AgentError: the source of the agent has changed since the runs were requested.
    """
    setting = lookup(runs[0].env_id).make_setting(runs[0].parameters)
    if agent_digest(agent.agent) != runs[0].agent_digest:
        raise AgentError(f"the source of {agent.name} has changed since its runs were planned: give the command again")
    if agent.batch_seeds:
        warm_up()
    together = batch_seeds and len(runs) > 1 and can_batch_seeds(agent.agent, setting)
    attempts = _attempt(agent.agent, runs, setting, progress, fractions, policies) if together else []
    if not attempts:
        attempts = [_attempt(agent.fresh(), [run], setting, progress, fractions, policies)[0] for run in runs]
    return [record_of(run, attempt) for run, attempt in zip(runs, attempts, strict=True)]


@functools.lru_cache(maxsize=8)
def oracle_of(env_id: str, setting: Setting) -> Oracle[Any]:
    """Return the oracle of a setting, with the two values that scores refer to.

    Raises:
        ParameterError: nothing can be won, so that there is no score.
    """
    oracle = lookup(env_id).oracle(setting)
    oracle.normalise(oracle.reference_value)
    return oracle


@dataclasses.dataclass
class Attempt:
    """The outcome of one run, under the names that its record has for it."""

    #: UTC, ISO 8601
    started_at: str = dataclasses.field(default_factory=lambda: datetime.datetime.now(datetime.UTC).isoformat())
    lifted: int = 1  # how many runs were trained together
    #: {"episodes": spent, "metrics": {...}} at each scored policy; the last is the result
    curve: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    spent: dict[str, int] = dataclasses.field(default_factory=lambda: {"episodes": 0, "steps": 0})  # episodes and steps
    status: str = "ok"  # "ok", "failed", "nonfinite", "timeout" or "killed"
    error: str | None = None  # what went wrong, or None
    queries_per_response: float = 0.0  # of the result
    seconds_wall: float = 0.0  # training alone, without scoring; of runs trained together, their share
    seconds_cpu: float | None = 0.0  # likewise, of all threads of the process
    peak_memory_bytes: int | None = None  # of the process, or None where it cannot be told
    policy: dict[str, Any] | None = None  # what became of the final policy, where it was to be kept

    def spend(self, budget: Budget) -> None:
        """Note what has been spent."""
        self.spent = {"episodes": budget.spent, "steps": budget.steps}

    def fail(self, error: BaseException) -> None:
        """Keep the first thing that went wrong."""
        if self.status == "ok":
            self.status = "nonfinite" if isinstance(error, NonFiniteError) else "failed"
            self.error = describe(error)


def _attempt(
    agent: Any,
    identities: Sequence[Identity],
    setting: Setting,
    progress: Progress | None,
    fractions: Sequence[float],
    policies: Path | None = None,
) -> list[Attempt]:
    """Train runs together and score each; return no attempts if several fail together: the culprit is then unknown."""
    first = identities[0]
    oracle = oracle_of(first.env_id, setting)
    attempts = [Attempt(lifted=len(identities)) for _ in identities]
    restart_peak_memory()
    watch = Stopwatch()
    reached: set[int] = set()  # runs that have reached the target of their level: what follows is no part of them

    def checkpoint(number: int, attempt: Attempt) -> Callable[[Any, int, dict[str, float]], None]:
        def score(policy: Any, spent: int, scalars: dict[str, float]) -> None:
            if number in reached:
                return
            with watch.paused():
                _score(attempt, oracle, policy, spent, scalars)
                if progress is not None:
                    progress(spent / first.budget)
            if first.rung is None or attempt.status != "ok":
                return
            if attempt.curve[-1]["metrics"]["score"] >= first.rung.target:
                reached.add(number)
                attempt.spend(ledger[number])
                _conclude(attempt, oracle, policy, policies, identities[number].key)
                if len(reached) == len(attempts):
                    raise TargetReached("every run has reached its target")

        return score

    seeds = [identity.seed for identity in identities]
    checkpoints = [checkpoint(number, attempt) for number, attempt in enumerate(attempts)]
    ledger: list[Budget] = []
    try:
        trained = train(agent, first.env_id, setting.parameters, seeds, first.budget, checkpoints, ledger, fractions)
    except (Exception, SystemExit) as error:
        if len(attempts) > 1:
            return []
        attempts[0].fail(error)
        trained = []
    wall, cpu = watch.read()
    memory = peak_memory()
    for attempt in attempts:
        attempt.seconds_wall, attempt.seconds_cpu = wall / len(attempts), cpu / len(attempts)
        attempt.peak_memory_bytes = memory
    for number in set(range(len(attempts))) - reached:
        if number < len(ledger):
            attempts[number].spend(ledger[number])
        if number < len(trained):
            _conclude(attempts[number], oracle, trained[number].policy, policies, identities[number].key)
    return attempts


def _score(
    attempt: Attempt, oracle: Oracle[Any], policy: Any, spent: int, reported: Mapping[str, float] | None = None
) -> None:
    """Add a policy to the curve of a run, or replace one of as many episodes, with what the agent reported there."""
    try:
        metrics = measure(oracle, policy)
    except Exception as error:
        attempt.fail(error)
        return
    same = attempt.curve.pop()["metrics"] if attempt.curve and attempt.curve[-1]["episodes"] == spent else {}
    kept = {name: x for name, x in same.items() if name.startswith(REPORTED)}
    new = {REPORTED + name: x for name, x in (reported or {}).items()}
    attempt.curve.append({"episodes": spent, "metrics": metrics | kept | new})


def record_of(identity: Identity, attempt: Attempt) -> Record:
    """Return the record of a run and its outcome; a run that failed has no score."""
    metrics = attempt.curve[-1]["metrics"] if attempt.curve else {}
    return make_record(
        **identity.model_dump(),
        **vars(attempt),
        metrics={name: x for name, x in metrics.items() if name != "score" and not name.startswith(REPORTED)},
        score=metrics["score"] if attempt.status == "ok" else None,
        hardware=hardware(),
        versions=versions(),
        git_commit=git_commit(),
    )


def _conclude(attempt: Attempt, oracle: Oracle[Any], policy: Any, folder: Path | None, key: str) -> None:
    """Score the result of a run, note what its responses cost, and keep it where there is a folder for it."""
    asked = policy if folder is None else listening(policy, oracle)
    _score(attempt, oracle, asked, attempt.spent["episodes"])
    queries = getattr(policy, "queries_per_response", 0.0)
    if isinstance(queries, (int, float, np.number)) and 0 <= queries < math.inf:
        attempt.queries_per_response = float(queries)
    else:
        attempt.fail(PolicyError(f"queries_per_response = {queries!r}: expected a finite number >= 0"))
    if attempt.status == "ok":
        metrics = attempt.curve[-1]["metrics"]
        if not math.isfinite(metrics["score"]):
            attempt.fail(NonFiniteError(f"the score is {metrics['score']}"))
        wrong = impossible(metrics["score"], metrics, oracle.reference_value, oracle.optimal_value)
        if wrong:
            attempt.fail(PolicyError(wrong))
    if folder is not None and attempt.status == "ok":
        attempt.policy = keep(asked, oracle, folder, key)


def impossible(score: float, metrics: Mapping[str, float], reference: float, optimum: float) -> str:
    """Say why a score is none that a policy can earn; "" where one can.

    Args:
        score: of a run.
        metrics: of its final policy.
        reference: the value of the reference policy.
        optimum: the value of the optimal policy.
    """
    gap, objective = optimum - reference, metrics.get("objective", math.nan)
    noise = SURE * metrics.get("objective_se", 0.0) / gap  # values of some policies are estimates
    most = 1.0 + EXACT + (noise if math.isfinite(noise) else 0.0)
    if not score <= most:
        return f"score = {score!r}: expected at most 1, which the optimal policy earns"
    expected = (objective - reference) / gap
    if not abs(score - expected) <= AGREES * max(1.0, abs(expected)):
        return f"score = {score!r}: expected {expected!r}, which follows from the objective {objective!r}"
    return ""


def refused(record: Record, reference: float, optimum: float) -> Record:
    """Return a record as failed where its score is none that a policy can earn, else as it is; see `impossible`."""
    wrong = "" if record.score is None else impossible(record.score, record.metrics, reference, optimum)
    if not wrong:
        return record
    fields = {name: value for name, value in record.to_dict().items() if name not in ("schema", "key")}
    return make_record(
        **{**fields, "score": None, "policy": None, "status": "failed", "error": f"PolicyError: {wrong}"}
    )


def measure(oracle: Oracle[Any], policy: Any, metrics: Sequence[str] | None = None) -> dict[str, float]:
    """Return metrics of a policy, all of them unless some are named, and its score."""
    found = oracle.evaluate(policy, None if metrics is None else [name for name in metrics if name != "score"])
    return {**found, "score": oracle.normalise(found["objective"])}


def describe(error: BaseException) -> str:
    """Say in one line what went wrong and, unless it is our own finding, where in the agent's file it happened."""
    text = f"{type(error).__name__}: {error}".strip().removesuffix(":")
    if isinstance(error, TheoryBenchError):
        return text
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_ours(frame.filename)]
    own = [frame for frame in frames if frame.filename == frames[0].filename]
    where = f" ({Path(own[-1].filename).name}, line {own[-1].lineno}, in {own[-1].name})" if own else ""
    return text + where


def _is_ours(filename: str) -> bool:
    """Return whether a source file belongs to the parts of the package that run agents."""
    root, file = Path(__file__).resolve().parents[2], Path(filename).resolve()
    return any(file.is_relative_to(root / room) for room in ("agents", "leaderboard", "envs/core"))
