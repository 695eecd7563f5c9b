"""One run is one record: its schema, its key, and its strict JSON form.

A record is written by `make_record` and read by `parse_record`; both check every field. Its key is a hash of what was
asked for, so that nothing is run twice and nothing passes for what it is not.

JSON has no infinities, but a metric (a coverage, say) may be infinite: in JSON text the metrics inf, -inf and nan are
the strings "inf", "-inf" and "nan", and numbers again when they are read.
"""

import hashlib
import itertools
import json
import math
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    PlainSerializer,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from theorybench.envs.core.errors import RecordError

#: Version of the schema; stores and files of another one are refused.
SCHEMA = 1
#: The fields from which the key is computed.
KEY_FIELDS = (
    "env_id",
    "parameters",
    "fingerprint",
    "split",
    "agent",
    "agent_digest",
    "hyperparameters",
    "seed",
    "budget",
    "rung",
)
#: Longest error that is kept, in characters; of a longer one the end is kept, where tracebacks say what happened.
ERROR_LENGTH = 10_000
_NON_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def _read_number(value: Any) -> Any:
    if isinstance(value, str) and value in _NON_FINITE:
        return _NON_FINITE[value]
    if isinstance(value, bool):
        raise ValueError('a number, or "inf", "-inf", "nan"')
    return value.item() if hasattr(value, "dtype") and value.ndim == 0 else value


def _write_number(value: float) -> float | str:
    return value if math.isfinite(value) else repr(value)


def _printable(value: str) -> str:
    if not value.strip() or not value.isprintable():
        raise ValueError("text that can be printed on one line")
    return value


#: A float that may be infinite or NaN.
Number = Annotated[float, BeforeValidator(_read_number), PlainSerializer(_write_number, when_used="json")]
#: A non-negative float that is finite.
Amount = Annotated[float, BeforeValidator(_read_number), Field(ge=0, allow_inf_nan=False)]
#: A non-negative integer that databases can hold.
Count = Annotated[int, Field(ge=0, lt=2**63)]
Name = Annotated[str, Field(max_length=500), BeforeValidator(lambda v: _printable(v) if isinstance(v, str) else v)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{8,64}$")]
Metrics = dict[Name, Number]


class _Strict(BaseModel):
    """No field that is not declared, no value that must be converted, no change afterwards."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, populate_by_name=False)


class Spent(_Strict):
    """What a run used."""

    episodes: Count  # charged to the budget
    steps: Count  # of the environment


class CurvePoint(_Strict):
    """A policy that was scored during training."""

    episodes: Count  # spent when it was logged
    metrics: Metrics  # exact, always with "score"; under "train/" what the agent reported with `log`

    @field_validator("metrics")
    @classmethod
    def _has_score(cls, metrics: dict[str, float]) -> dict[str, float]:
        if "score" not in metrics:
            raise ValueError('metrics with the key "score"')
        return metrics


class Rung(_Strict):
    """Where a run stands on a ladder of difficulty: it ends as soon as it reaches the target."""

    ladder: Name  # the parameter of the setting that is raised from rung to rung
    target: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]  # the score at which the task counts as learnt
    #: the agent's strategy, "direct" or "curriculum", which selects the law of theory that applies
    way: Literal["direct", "curriculum"]


class Record(_Strict):
    """One run. Make one with `make_record`, read one with `parse_record`.

    Attributes:
        schema_version: "schema" in JSON; 1.
        key: sha256 of the canonical JSON of the fields named in KEY_FIELDS, 64 hexadecimal digits.
        env_id: such as "TheoryBench/TreeMarkovChain-v0".
        parameters: of the setting, all of them.
        fingerprint: of the setting; results with different fingerprints are never averaged.
        split: what the instance is for.
        track: "reasoning", "curriculum", "preference", or another that an outside setting names.
        env_label: how boards call the environment; None to make a name from id and parameters.
        agent: as it is named on the command line, without hyper-parameters.
        agent_label: how boards call it; None to make a name from agent and hyper-parameters.
        agent_digest: hash of the agent's source.
        hyperparameters: of the agent.
        feedback: what the agent learnt from: the setting's, or "none".
        privileged: whether it could read the oracle; such agents are drawn as lines and never ranked.
        seed: of the run.
        budget: episodes granted.
        rung: of a ladder of difficulty; None for runs that use their whole budget.
        spent: episodes and steps used.
        curve: scored policies, by increasing number of episodes.
        metrics: of the final policy, with "objective"; whatever is known where the run failed.
        score: (J - J_ref) / (J_opt - J_ref) of the final policy; None where the run failed.
        status: "ok", or how it failed.
        error: what went wrong; None where nothing did.
        seconds_wall: wall time of training, without scoring; of runs trained together, its share.
        seconds_cpu: processor time likewise; None where it is not known.
        queries_per_response: how often a response of the final policy asks a reward model; 0 for older records.
        lifted: how many runs were trained together; 1 is alone.
        peak_memory_bytes: of the process; None where it is not known.
        hardware: processor, cores and system, in words.
        versions: of the libraries.
        git_commit: of the package's sources, or None.
        started_at: ISO 8601 with time zone.
    """

    schema_version: Literal[1] = Field(alias="schema")
    key: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    env_id: Name
    parameters: dict[str, JsonValue]
    fingerprint: Digest
    split: Literal["canonical", "tuning", "scoring"]
    track: Name
    env_label: Name | None
    agent: Name
    agent_label: Name | None
    agent_digest: Digest
    hyperparameters: dict[str, JsonValue]
    feedback: Name
    privileged: bool
    seed: Count
    budget: Annotated[int, Field(ge=1, lt=2**63)]
    rung: Rung | None = None
    spent: Spent
    curve: list[CurvePoint]
    metrics: Metrics
    score: Annotated[float, BeforeValidator(_read_number), Field(allow_inf_nan=False)] | None
    status: Literal["ok", "failed", "timeout", "killed", "nonfinite"]
    error: Annotated[str, Field(min_length=1, max_length=ERROR_LENGTH)] | None
    seconds_wall: Amount
    seconds_cpu: Amount | None
    queries_per_response: Amount = 0.0
    lifted: Annotated[int, Field(ge=1)]
    peak_memory_bytes: Count | None
    hardware: str
    versions: dict[str, str]
    git_commit: Annotated[str, Field(pattern=r"^[0-9a-f]{7,64}$")] | None
    started_at: str

    @field_validator("started_at")
    @classmethod
    def _is_moment(cls, value: str) -> str:
        try:
            known = datetime.fromisoformat(value).tzinfo is not None
        except ValueError:
            known = False
        if not known:
            raise ValueError("a moment with time zone, such as 2025-01-31T12:00:00+00:00")
        return value

    @field_validator("curve")
    @classmethod
    def _increases(cls, curve: list[CurvePoint], info: ValidationInfo) -> list[CurvePoint]:
        episodes = [point.episodes for point in curve]
        if any(b <= a for a, b in itertools.pairwise(episodes)):
            raise ValueError("points with increasing numbers of episodes")
        if episodes and episodes[-1] > info.data.get("budget", episodes[-1]):
            raise ValueError("points within the budget")
        return curve

    @model_validator(mode="after")
    def _agrees(self) -> "Record":
        """Check what concerns several fields."""
        if self.spent.episodes > self.budget:
            raise ValueError(f"spent.episodes = {self.spent.episodes}: expected at most budget = {self.budget}")
        if self.status == "ok":
            if self.score is None or self.error is not None or "objective" not in self.metrics:
                raise ValueError('status = "ok": expected a score, metrics with "objective" and no error')
        elif self.score is not None or self.error is None:
            raise ValueError(f"status = {self.status!r}: expected no score and an error")
        asked = {name: getattr(self, name) for name in KEY_FIELDS}
        key = record_key(**{**asked, "rung": self.rung.model_dump() if self.rung else None})
        if self.key != key:
            raise ValueError(f"key = {self.key[:16]}...: expected {key[:16]}..., the hash of the record's contents")
        return self

    def __repr_args__(self) -> Iterator[tuple[str, Any]]:
        """Show what tells runs apart; `to_dict` has the rest."""
        for name in ("env_id", "agent", "seed", "budget", "status", "score"):
            yield name, getattr(self, name)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as Python values; infinite and NaN metrics are floats."""
        return self.model_dump(by_alias=True)

    def to_json(self) -> str:
        """Return canonical JSON: one line, sorted keys, ASCII; equal records have equal JSON."""
        return _canonical(self.model_dump(mode="json", by_alias=True))


def record_key(
    *,
    env_id: str,
    parameters: Mapping[str, Any],
    fingerprint: str,
    split: str,
    agent: str,
    agent_digest: str,
    hyperparameters: Mapping[str, Any],
    seed: int,
    budget: int,
    rung: Mapping[str, Any] | None = None,
) -> str:
    """Return the key of the run that these values describe; runs with equal keys are not repeated.

    Raises:
        RecordError: parameters or hyper-parameters that JSON cannot hold.
    """
    parameters, hyperparameters = json_value(parameters, "parameters"), json_value(hyperparameters, "hyperparameters")
    asked = [env_id, parameters, fingerprint, split, agent, agent_digest, hyperparameters, seed, budget]
    # Keys of runs that use their whole budget are what they were before there were ladders.
    asked += [dict(rung)] if rung else []
    return hashlib.sha256(_canonical(asked).encode()).hexdigest()


def make_record(
    *,
    feedback: str = "reward",
    privileged: bool = False,
    env_label: str | None = None,
    agent_label: str | None = None,
    error: str | None = None,
    rung: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Record:
    """Make a record: schema and key are added, parameters and hyper-parameters made JSON (see `json_value`).

    Args:
        feedback: see `Record`, as for all others.
        privileged: could it read the oracle.
        env_label: name of the environment on boards, or None.
        agent_label: name of the agent on boards, or None.
        error: what went wrong; of a long text the end is kept.
        rung: of a ladder, or None.
        fields: every other field of `Record` but `schema` and `key`.

    Raises:
        RecordError: a field that is missing, unknown or wrong.
    """
    labels = {"env_label": env_label, "agent_label": agent_label}
    values = {**fields, **labels, "feedback": feedback, "privileged": privileged, "error": _tidy(error)}
    values["rung"] = rung
    for name in ("parameters", "hyperparameters"):
        values[name] = json_value(values.get(name, {}), name)
    missing = [name for name in KEY_FIELDS if name not in values]
    if missing:
        raise RecordError(f"a record lacks the field {missing[0]!r}")
    key = record_key(**{name: values[name] for name in KEY_FIELDS})
    return parse_record({"schema": SCHEMA, "key": key, **values})


def parse_record(data: str | Mapping[str, Any], source: str = "record") -> Record:
    """Read a record from JSON text or from a mapping, and check it.

    Args:
        data: as `Record.to_json` or `Record.to_dict` gives it.
        source: where it comes from, for errors.

    Raises:
        RecordError: names the first field that is wrong, its value and what is allowed.
    """
    if isinstance(data, str):
        try:
            data = json.loads(data, parse_constant=_refuse_constant, object_pairs_hook=_without_duplicates)
        except (ValueError, RecursionError) as error:
            raise RecordError(f"{source} is no JSON: {error}") from error
    if not isinstance(data, Mapping):
        raise RecordError(f"{source}: expected an object with the fields of a record, got {type(data).__name__}")
    schema = data.get("schema")
    if schema != SCHEMA or isinstance(schema, bool):
        raise RecordError(f"{source}: schema = {schema!r}: expected {SCHEMA}, which this version of theorybench reads")
    try:
        return Record.model_validate(dict(data))
    except ValidationError as error:
        raise RecordError(f"{source}: {_explain(error)}") from None


def json_value(value: Any, field: str = "value") -> Any:
    """Return a value as JSON holds it: tuples are lists, NumPy numbers are numbers, inf is the string "inf".

    Named tuples are tables; a number in them that is not known, NaN, is null.

    Raises:
        RecordError: a value that JSON cannot hold, such as a function.
    """
    if isinstance(value, Mapping):
        return {_key_of(name, field): json_value(entry, f"{field}.{name}") for name, entry in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return json_value({name: None if entry != entry else entry for name, entry in value._asdict().items()}, field)
    if isinstance(value, list | tuple):
        return [json_value(entry, f"{field}[{i}]") for i, entry in enumerate(value)]
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        return json_value(value.tolist(), field)
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise RecordError(f"{field} = {value!r:.120}: expected a number, text, boolean, null, list or table of these")


def _key_of(name: Any, field: str) -> str:
    if not isinstance(name, str):
        raise RecordError(f"{field} has the key {name!r}: expected text")
    return name


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _tidy(error: str | None) -> str | None:
    """Keep the end of an error, in characters that UTF-8 can hold."""
    return error if error is None else error[-ERROR_LENGTH:].encode("utf-8", "replace").decode("utf-8")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a field appears twice")
    return dict(pairs)


def _explain(error: ValidationError) -> str:
    """Say in one sentence what is wrong first: field, value, what is allowed."""
    first = error.errors(include_url=False)[0]
    path = [part for part in first["loc"] if not str(part).startswith(("function-", "float", "constrained-"))]
    field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
    message = first["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    if first["type"] == "extra_forbidden":
        return f"unknown field {field!r}; a record has {', '.join(Record.model_fields)}"
    if first["type"] == "missing":
        return f"the field {field!r} is missing"
    return f"{field} = {first['input']!r:.120}: expected {message}" if field else message
