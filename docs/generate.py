"""Write one page for each setting and each agent from the code itself: `python docs/generate.py`."""

import dataclasses
import inspect
import sys
from pathlib import Path

import theorybench as tb
from theorybench.agents.loading import agent_class
from theorybench.envs.core.registry import lookup

ROOT = Path(__file__).parent


def table(header: tuple[str, ...], rows: list[tuple[object, ...]]) -> str:
    """Return a Markdown table."""
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def fields_of(cls: type) -> str:
    """Return a table of a dataclass's declared fields: name, default, range, meaning."""
    rows = []
    for field in dataclasses.fields(cls):
        valid = field.metadata["range"]
        rows.append((f"`{field.name}`", f"`{field.default!r}`", valid.allowed, valid.meaning))
    return table(("name", "default", "allowed", "meaning"), rows)


def setting_page(id: str) -> str:
    """Return the page of a setting: its docstring, parameters, metrics and claims."""
    entry = lookup(id)
    parts = [
        f"# {id}",
        f"`gym.make({id!r})` · track *{entry.setting.track}* · feedback *{entry.setting.feedback}* · "
        f"default budget {entry.budget:,} episodes",
        inspect.getdoc(entry.setting) or "",
        "## Parameters",
        fields_of(entry.setting),
    ]
    metrics = getattr(entry.oracle, "metrics", {})
    parts += ["## Metrics", table(("metric", "meaning"), [(f"`{name}`", text) for name, text in metrics.items()])]
    claims = entry.claims()
    if claims:
        rows = [(f"`{c.id}`", c.source, c.statement, c.falsified_by) for c in claims]
        parts += [
            "## Claims",
            f"`theorybench claims {id}` checks them.",
            table(("claim", "source", "statement", "falsified by"), rows),
        ]
    studies = entry.studies()
    if studies:
        rows = [(f"`{s.id}`", s.source, s.title) for s in studies]
        parts += [
            "## Studies",
            f"`theorybench study {id}` makes these tables and figures; `--pictures DIR` and `--html FILE` draw them.",
            table(("study", "source", "what it shows"), rows),
        ]
    return "\n\n".join(parts) + "\n"


def agent_page(name: str) -> str:
    """Return the page of an agent: the docstring of its file and its hyper-parameters."""
    cls = agent_class(name)
    module = sys.modules[cls.__module__]
    feedback = getattr(cls, "feedback", "reward")
    parts = [f"# {name}", f"`theorybench run --agents {name}` · feedback *{feedback}*", inspect.getdoc(module) or ""]
    if dataclasses.is_dataclass(cls):
        parts += ["## Hyper-parameters", fields_of(cls)]
    return "\n\n".join(parts) + "\n"


def pages() -> dict[Path, str]:
    """Return every page by path."""
    ids = [id for id in tb.list_envs() if id.startswith("TheoryBench/")]
    names = [n for n in tb.list_agents() if agent_class(n).__module__.startswith("theorybench.")]
    result = {ROOT / "settings" / f"{id.partition('/')[2]}.md": setting_page(id) for id in ids}
    result |= {ROOT / "agents" / f"{name}.md": agent_page(name) for name in names}
    index = [
        "# TheoryBench, page by page",
        "[Driving the environments](driving.md) · [Running and comparing](running.md). The pages below are generated "
        "from the code by `python docs/generate.py`.",
        "## Settings",
    ]
    index += ["\n".join(f"- [{id}](settings/{id.partition('/')[2]}.md)" for id in ids), "## Agents"]
    index += ["\n".join(f"- [{name}](agents/{name}.md)" for name in names)]
    result[ROOT / "README.md"] = "\n\n".join(index) + "\n"
    return result


if __name__ == "__main__":
    for path, text in pages().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        print(path.relative_to(ROOT.parent))
