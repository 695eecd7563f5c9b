"""The command `theorybench tune`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from theorybench.output import make_console


def tune(
    agent: Annotated[
        str,
        typer.Argument(metavar="AGENT", help="Whose hyper-parameters: grpo, grpo\\[policy=mlp], my_agent.py:MyAgent."),
    ],
    suite: Annotated[
        str, typer.Option(metavar="SUITE", help="Whose environments count: a suite that ships, or a file .toml.")
    ] = "starter",
    trials: Annotated[
        int, typer.Option(metavar="N", min=1, help="Configurations that are tried; the first is the default.")
    ] = 16,
    envs: Annotated[
        str | None, typer.Option(metavar="ID,ID", help="Only these environments of the suite, by id or label.")
    ] = None,
    seeds: Annotated[int, typer.Option(metavar="K", min=1, help="Runs of each environment.")] = 2,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Of the search itself.")] = 0,
    budget: Annotated[int | None, typer.Option(metavar="N", min=1, help="Episodes of each run.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Of the search. Default: results/tune/SUITE/AGENT.")
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Keep the result as AGENT\\[preset=NAME], beside the agent's file."),
    ] = None,
) -> None:
    """Search an agent's hyper-parameters on tuning instances. Give the same command again to resume or to go on."""
    from theorybench.envs.core.registry import split_list
    from theorybench.leaderboard.running.arguments import choose_suite
    from theorybench.leaderboard.tuning.output import write_configuration, write_preset
    from theorybench.leaderboard.tuning.search import Search

    file = Path(suite) if suite.endswith(".toml") else None
    chosen = choose_suite(file, None if file else suite, environments=split_list(envs), budget=budget)
    folder = out or Path("results") / "tune" / chosen.name / agent.replace("/", "-").replace(":", "-")
    console = make_console(stderr=True)
    search = Search(agent, chosen, folder, seeds=seeds, seed=seed)
    for dimension in search.space:
        console.print(f"{dimension.name}: {dimension.describe()}", highlight=False, markup=False, soft_wrap=True)
    for task in search.tasks:
        instance = "as it is: it has no instances" if task.instance is None else f"tuning instance {task.instance}"
        console.print(f"{task.name}: {instance}", highlight=False, markup=False, soft_wrap=True)
    if search.left_out:
        console.print(f"left out: {', '.join(search.left_out)}", highlight=False, markup=False, soft_wrap=True)

    def watch(number: int, value: float | None, values: dict[str, Any]) -> None:
        outcome = "pruned" if value is None else f"{value:.4f}"
        tried = ", ".join(f"{name}={entry}" for name, entry in values.items()) or "the default"
        console.print(f"trial {number}: {outcome}  {tried}", highlight=False, markup=False, soft_wrap=True)

    try:
        found = search.run(trials, watch)
    except KeyboardInterrupt:
        console.print(f"stopped; trials that ended are kept in {folder}. Resume with the same command.", soft_wrap=True)
        raise typer.Exit(130) from None
    path = write_configuration(found, chosen, search.trials(), folder)
    record = found.record
    lines = [
        f"default {record['confirmed_default']}, best {record['confirmed_best']}: other seeds, other tuning instances",
        f"compare: theorybench run {path} --out {folder / 'runs'}",
    ]
    if not found.hyperparameters:
        lines.insert(1, "nothing that was tried is better than the default")
    if preset is not None:
        lines.append(f"preset {preset} in {write_preset(found, preset)}")
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)
