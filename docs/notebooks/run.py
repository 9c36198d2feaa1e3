"""Executes a notebook, and makes the page of it that the documents show.

    python docs/notebooks/run.py docs/notebooks/leak.ipynb            executes it; fails where a cell does
    python docs/notebooks/run.py docs/notebooks/leak.ipynb --write    stores its outputs, and the page beside it

It needs nbclient (0.10 or later), nbformat and ipykernel. The notebooks need the module, and the program ``telltale``: that of the
variable ``TELLTALE``, else the one on the ``PATH``.
"""

from __future__ import annotations

import argparse
import base64
import copy
import os
import re
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

#: How long a cell may run, in seconds.
CELL_TIMEOUT = 120


def read(path: Path) -> Any:
    """The notebook in a file."""
    return import_module("nbformat").read(path, as_version=4)


def execute(notebook: Any) -> Any:
    """A copy of a notebook, run from top to bottom in an empty directory by a kernel of this interpreter.

    Raises ``CellExecutionError`` where a cell fails.
    """
    executed = copy.deepcopy(notebook)
    with tempfile.TemporaryDirectory() as directory:
        # Jupyter's own files, which would be left in the user's home.
        for variable in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR"):
            os.environ[variable] = directory
        client = import_module("nbclient").NotebookClient(
            executed,
            timeout=CELL_TIMEOUT,
            kernel_name="python3",
            record_timing=False,
            # What a cell prints may come in any number of parts.
            coalesce_streams=True,
            extra_arguments=["--log-level=ERROR"],
            resources={"metadata": {"path": directory}},
        )
        client.execute()
    executed.metadata = notebook.metadata
    return executed


def page(notebook: Any, name: str) -> tuple[str, dict[str, bytes]]:
    """The Markdown page of the notebook ``name``, and the pictures beside it by their file names."""
    pictures: dict[str, bytes] = {}
    parts = [f"<!-- Generated from {name}.ipynb by docs/notebooks/run.py -->"]
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source.strip())
        elif cell.cell_type == "code":
            # Examples in blocks of `python` are whole programs, which a cell is not.
            parts.append(f"```py\n{cell.source.strip()}\n```")
            parts.extend(_outputs(cell, name, pictures))
    return "\n\n".join(parts) + "\n", pictures


def _outputs(cell: Any, name: str, pictures: dict[str, bytes]) -> Iterator[str]:
    for output in cell.outputs:
        if output.output_type == "stream":
            yield _text(output.text)
            continue
        data = output.get("data", {})
        if "image/png" in data:
            file = f"{name}-{len(pictures) + 1}.png"
            pictures[file] = base64.b64decode(data["image/png"])
            yield f"![]({file})"
        elif "text/html" in data:
            yield _html(data["text/html"])
        elif "text/plain" in data:
            yield _text(data["text/plain"])


def _text(text: str) -> str:
    lines = [line.rstrip() for line in text.strip("\n").splitlines()]
    return "\n".join(("```text", *lines, "```"))


def _html(text: str) -> str:
    """HTML that Markdown leaves alone: no empty lines, no indented ones, and none of the styles of pandas."""
    text = re.sub(r"<style.*?</style>", "", text, flags=re.DOTALL)
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())


def write(path: Path, notebook: Any) -> None:
    """Stores a notebook that was executed, and its page and pictures beside it."""
    import_module("nbformat").write(notebook, path)
    text, pictures = page(notebook, path.stem)
    path.with_suffix(".md").write_text(text, encoding="utf-8")
    for file, data in pictures.items():
        path.with_name(file).write_bytes(data)


def main() -> None:
    arguments = argparse.ArgumentParser(description="Execute a notebook")
    arguments.add_argument("notebook", type=Path, nargs="+")
    arguments.add_argument("--write", action="store_true", help="store its outputs, and the page beside it")
    given = arguments.parse_args()
    for path in given.notebook:
        executed = execute(read(path))
        if given.write:
            write(path, executed)


if __name__ == "__main__":
    main()
