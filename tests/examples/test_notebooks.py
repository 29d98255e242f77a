"""The notebooks of examples/notebooks execute without an error. `make site` runs this file."""

from __future__ import annotations

from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "notebooks"


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # the Jupyter libraries emit warnings
@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebook_executes(path: Path, tmp_path: Path) -> None:
    nbclient = pytest.importorskip("nbclient", reason="the dependency group `site` is not installed")
    nbformat = pytest.importorskip("nbformat", reason="the dependency group `site` is not installed")
    notebook = nbformat.read(path, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "commit notebooks without outputs"
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code)
