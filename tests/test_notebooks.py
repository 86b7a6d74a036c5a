"""The notebooks of the documentation run from the first cell to the last."""

import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "notebooks").glob("*.ipynb"))
EXECUTE = """
import sys
import nbformat
from nbclient import NotebookClient

notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=200, resources={"metadata": {"path": sys.argv[2]}}).execute()
done = [cell for cell in notebook.cells if cell.cell_type == "code"]
assert done and all(cell.execution_count for cell in done)
"""


def test_there_are_two() -> None:
    assert [each.stem for each in NOTEBOOKS] == ["release-and-inference", "verification"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda each: each.stem)
def test_a_notebook_runs(notebook: Path, tmp_path: Path) -> None:
    """In a process of its own: the kernel's libraries warn of things that are not ours."""
    done = subprocess.run(
        [sys.executable, "-c", EXECUTE, notebook, tmp_path],
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert '"outputs": []' in notebook.read_text()  # stored without outputs
