"""The commands `theorybench diagnose` and `theorybench ope`: what logs tell of a view, and of another policy."""

import contextlib
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from theorybench.envs.core.errors import ConfigurationError, ParameterError
from theorybench.output import Json, make_console, print_json

if TYPE_CHECKING:
    from theorybench.leaderboard.diagnosing.diagnosis import Diagnosis
    from theorybench.leaderboard.offline.board import Result
    from theorybench.leaderboard.offline.suite import OfflineSuite

#: The estimators that a command runs unless told otherwise.
ALL = "mean,wis,residual,2sls,f2bmld"


def diagnose(
    id: Annotated[
        str,
        typer.Argument(
            metavar="ID", help="An environment: its id, its short name, or file.py:ID; with parameters ID\\[pass_k=4]."
        ),
    ],
    summary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="What is tested: a view, such as prefix, markov, position or state, or file.py:name of a function of "
            "observations. May be given several times. Default: the view that tables of the environment have.",
        ),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="What it should be sufficient for: reward (the default), reply (what the environment appends next) or "
            "action (the policy's next one). May be given several times.",
        ),
    ] = None,
    policy: Annotated[
        str,
        typer.Option(metavar="POLICY", help="Whose episodes: a saved policy, file.py:Name, or a name, as in evaluate."),
    ] = "reference",
    episodes: Annotated[int, typer.Option(metavar="N", help="Episodes that are rolled out.")] = 4000,
    flips: Annotated[int, typer.Option(metavar="N", help="Random signs that the p-value counts over.")] = 999,
    features: Annotated[
        str, typer.Option(metavar="NAME", help="What is looked for: linear, or crossed (for each summary by itself).")
    ] = "linear",
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Of episodes, pairs and signs.")] = 0,
    param: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A parameter of the setting; give the option once for each."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Test whether a view, or what a policy keeps, remembers enough: a small p-value says that it does not."""
    from theorybench.leaderboard.diagnosing import diagnosis
    from theorybench.leaderboard.running.arguments import parse_parameters

    found = diagnosis.diagnose(
        policy,
        id,
        summaries=summary or (),
        targets=target or ("reward",),
        episodes=episodes,
        seed=seed,
        flips=flips,
        features=features,
        **parse_parameters(param or []),
    )
    if as_json:
        print_json(dataclasses.asdict(found))
        return
    _print(found)


def _print(found: "Diagnosis") -> None:
    """Print the findings as tables, one for each diagnostic, and a line of meaning below each."""
    from rich.table import Table

    console = make_console()
    console.print(f"{found.env_id}, {found.episodes:,} episodes of {found.policy}", highlight=False, soft_wrap=True)
    for one in found.findings:
        table = Table(box=None, pad_edge=False)
        rows = {**one.asked, **one.values}
        for name in rows:
            table.add_column(name.replace("_", " "), style="cyan" if name in one.asked else "")
        table.add_row(*(f"{value:.4g}" if isinstance(value, float) else str(value) for value in rows.values()))
        console.print(table)
        console.print(f"  {one.meaning}", highlight=False, soft_wrap=True)


def ope(
    id: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="An environment with rewards, as `theorybench evaluate` takes it."),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="POLICY",
            help="Whose value is asked for: a saved policy, file.py:Name, `initial`, `reference`, `random`, `optimal`.",
        ),
    ] = None,
    behaviour: Annotated[
        str, typer.Option(metavar="POLICY", help="Who wrote the logs: `initial`, `reference`, `random` or a file.")
    ] = "initial",
    suite: Annotated[
        str | None, typer.Option(metavar="NAME", help="In place of ID and POLICY: the suite `offline`, or a TOML file.")
    ] = None,
    episodes: Annotated[
        int | None, typer.Option(metavar="N", help="Of each log. Default: 2000, or the suite's.")
    ] = None,
    estimators: Annotated[str | None, typer.Option(metavar="A,B", help=f"Some of {ALL}. Default: all.")] = None,
    view: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What counts as the same situation. Default: states, or all that was seen."),
    ] = None,
    seeds: Annotated[int | None, typer.Option(metavar="N", help="Logs, one for each seed. Default: 10.")] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A parameter of the setting; give the option once for each."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where records go, and where to resume. Default: results/ope.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Estimate a policy's value from logs of another one, beside its exact value: bias, error, coverage."""
    from theorybench.agents.evaluation.offline import GROUPS as FEWEST
    from theorybench.envs.core.registry import split_list
    from theorybench.leaderboard.offline.board import results_of
    from theorybench.leaderboard.offline.measuring import suite_evaluations
    from theorybench.leaderboard.offline.records import EvaluationStore

    asked = _asked(id, policy, behaviour, suite, view, param)
    if episodes is not None:
        if episodes < FEWEST:
            raise ParameterError("episodes", episodes, f"an integer >= {FEWEST}, of which the jackknife makes groups")
        places = [place.model_copy(update={"episodes": episodes}) for place in asked.environments]
        asked = asked.model_copy(update={"environments": places})
    names = split_list(estimators) if estimators is not None else asked.estimators
    folder, console = out or Path("results") / asked.name, make_console(stderr=True)
    store, found, complete = EvaluationStore(folder), [], False
    with contextlib.suppress(KeyboardInterrupt):
        for record in suite_evaluations(asked, names, seeds, store):
            found.append(record)
            if console.is_terminal:
                console.print(f"{record.env_label}, {record.policy_label}, {record.question.estimator} ...", end="\r")
        complete = True
    show_results(results_of(found), as_json, ranked=suite is not None)
    console.print(f"{len(found)} estimates in {store.path}", highlight=False, soft_wrap=True)
    if not complete:
        console.print("stopped; what has ended is saved. Resume with the same command.", soft_wrap=True)
        raise typer.Exit(130)
    if any(record.status != "ok" for record in found):
        raise typer.Exit(1)


def _asked(
    id: str | None, policy: str | None, behaviour: str, suite: str | None, view: str | None, param: Sequence[str] | None
) -> "OfflineSuite":
    """Return the suite that is asked for, or one of a single setting and policy."""
    from theorybench.envs.core.registry import split_reference
    from theorybench.leaderboard.offline.suite import OfflinePlace, OfflineSuite, Target, offline_suite
    from theorybench.leaderboard.running.arguments import parse_parameters

    if suite is not None:
        given = {"ID": id, "--policy": policy, "--view": view, "--param": param}
        for name in (name for name, value in given.items() if value):
            raise ConfigurationError(f"give a suite ({suite}) or {name}, not both")
        return offline_suite(suite)
    if id is None or policy is None:
        missing = "ID" if id is None else "--policy"
        raise ConfigurationError(f"{missing} is missing: theorybench ope ID --policy POLICY, or --suite offline")
    name, inline = split_reference(id, "environment")
    place = OfflinePlace(
        id=name,
        parameters={**inline, **parse_parameters(param or [])},
        behaviour=Target(policy=behaviour),
        view=view,
        policies=[Target(policy=policy)],
    )
    return OfflineSuite(name="ope", estimators=ALL.split(","), environments=[place])


def show_evaluations(directory: Path, as_json: bool) -> bool:
    """Print the board of a folder that holds evaluations and no training runs; return whether it is one."""
    from theorybench.leaderboard.offline.board import results_of
    from theorybench.leaderboard.offline.records import EvaluationStore
    from theorybench.leaderboard.records.store import FILE_NAME

    store = EvaluationStore(directory)
    if not store.path.is_file() or (directory / FILE_NAME).exists():
        return False
    show_results(results_of(store), as_json, ranked=True)
    return True


def show_results(results: "list[Result]", as_json: bool, ranked: bool) -> None:
    """Print results, and the ranking of the estimators where a suite was measured."""
    from theorybench.leaderboard.offline.board import NOTE, overall, overall_table, result_tables
    from theorybench.leaderboard.showing.terminal import table_lines

    if as_json:
        rows: dict[str, Any] = {"results": [dataclasses.asdict(one) for one in results]}
        print_json(rows | {"overall": [dataclasses.asdict(one) for one in overall(results)]})
        return
    console = make_console()
    for table in result_tables(results):
        console.print(table_lines(table))
    if ranked and results:
        console.print(table_lines(overall_table(results)))
    else:
        console.print(NOTE, style="dim", highlight=False)
