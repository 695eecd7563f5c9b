"""The generated pages are those that the code gives now."""

import importlib.util
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_pages_are_what_the_code_says():
    spec = importlib.util.spec_from_file_location("generate_docs", DOCS / "generate.py")
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    pages = generate.pages()
    stale = [path.name for path, text in pages.items() if not path.exists() or path.read_text("utf-8") != text]
    assert not stale, f"run `python docs/generate.py`: {stale}"
    written = {path for folder in ("settings", "agents") for path in (DOCS / folder).glob("*.md")}
    assert written == {path for path in pages if path.parent != DOCS}, "remove pages of what is gone"
