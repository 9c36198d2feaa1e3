"""The notebooks of the documents run, and their pages show what they hold."""

from __future__ import annotations

import difflib
import getpass
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = Path(__file__).parents[4] / "docs" / "notebooks"
RUN = runpy.run_path(str(NOTEBOOKS / "run.py"))
NAMES = sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))


def shape(page: str) -> list[str]:
    """A page without what differs between runs and hosts: numbers, and what follows from their width."""
    page = re.sub(r"-?\d[\d.]*(e[-+]?\d+)?", "0", page)
    page = re.sub(rf"\b{re.escape(getpass.getuser())}\b", "user", page)
    return [" ".join(line.split()) for line in page.splitlines()]


@pytest.mark.parametrize("name", NAMES)
def test_a_page_shows_what_its_notebook_holds(name: str) -> None:
    stored: Any = RUN["read"](NOTEBOOKS / f"{name}.ipynb")
    page, pictures = RUN["page"](stored, name)
    advice = f"run docs/notebooks/run.py --write docs/notebooks/{name}.ipynb"
    assert (NOTEBOOKS / f"{name}.md").read_text(encoding="utf-8") == page, advice
    for file, data in pictures.items():
        assert (NOTEBOOKS / file).read_bytes() == data, advice
    assert f"notebooks/{name}.md" in (NOTEBOOKS.parent / "SUMMARY.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_and_gives_what_it_shows(name: str) -> None:
    stored: Any = RUN["read"](NOTEBOOKS / f"{name}.ipynb")
    executed: Any = RUN["execute"](stored)
    before, after = (shape(RUN["page"](notebook, name)[0]) for notebook in (stored, executed))
    assert before == after, "\n".join(difflib.unified_diff(before, after, "stored", "executed", lineterm=""))


def test_there_are_notebooks() -> None:
    assert NAMES == ["kernel", "leak", "machines"]
