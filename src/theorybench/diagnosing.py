"""The command `theorybench diagnose`."""

import dataclasses
from typing import TYPE_CHECKING, Annotated

import typer

from theorybench.output import Json, make_console, print_json

if TYPE_CHECKING:
    from theorybench.leaderboard.diagnosing.diagnosis import Diagnosis


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
