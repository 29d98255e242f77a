"""The numbered examples run with the bundled model and give what their texts promise."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

import guideway as gw

FOLDER = Path(__file__).parents[2] / "examples"
TINY = Path(gw.__file__).parent / "tiny"


def example(name: str) -> ModuleType:
    """Imports one example by the beginning of its file name."""
    [path] = FOLDER.glob(f"{name}_*.py")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", sorted(FOLDER.glob("[0-9]*.py")), ids=lambda path: path.stem)
def test_examples_are_short_and_begin_with_a_command(path: Path) -> None:
    lines = path.read_text("utf-8").splitlines()
    assert len(lines) <= 60
    assert lines[0].startswith('"""')
    assert path.name in lines[0]


def test_typed_extraction() -> None:
    bike, piano = example("01").main()
    assert (bike.price, bike.city, piano.price) == (180, "Freiburg", 950)


def test_choices_with_probabilities() -> None:
    found = example("02").main()
    assert found[0][0] == "delivery"
    assert sum(probability for _, probability in found) == pytest.approx(1, abs=1e-6)


def test_regex() -> None:
    release, *numbers = example("03").main()
    assert re.fullmatch(r"v\d{1,2}\.\d{1,2}", release)
    assert len(numbers) == 3
    assert all(re.fullmatch(r"\+49 \d{3} \d{4}", number) for number in numbers)


def test_sql_grammar() -> None:
    assert example("04").main().startswith("SELECT ")  # and sqlite3 accepted it


def test_tools() -> None:
    assert len(example("05").main()) == 1


def test_chat() -> None:
    mood, answer = example("06").main()
    assert mood in ("yes", "no")
    assert isinstance(answer, str)


def test_stream_to_terminal() -> None:
    from rich.console import Console

    console = Console(record=True, width=60, force_terminal=True)
    recipe = example("07").main("tiny", console)
    assert recipe.minutes == 30
    assert "Tomato soup" in console.export_text()


def test_async_service() -> None:
    answers = example("08").main()
    assert len(answers) == 4
    assert {answer for _, answer in answers} <= {"yes", "no"}


@pytest.mark.engine("torch", "transformers")
def test_transformers_batch() -> None:
    year, mood, _ = example("09").main()
    assert re.fullmatch(r"(19|20)\d\d", year)
    assert mood in ("fine", "tired")


@pytest.mark.engine("llama_cpp", "gguf")
def test_llama_cpp(tmp_path: Path) -> None:
    from tests.helpers.gguf_models import write_gguf

    write_gguf(TINY, tmp_path / "model.gguf")
    for review in example("10").main(str(tmp_path / "model.gguf")):
        assert 1 <= review["rating"] <= 5


def test_sessions_with_undo() -> None:
    first, again, other = example("11").main()
    assert first == again
    assert other[: len("A name for a boat: ")] == "A name for a boat: "


def test_batch_file() -> None:
    results = {result["custom_id"]: result for result in example("12").main()}
    assert set(results) == {"year", "mood", "bad"}
    assert "back-reference" in results["bad"]["error"]["message"]


def test_fastapi_endpoint() -> None:
    from starlette.testclient import TestClient

    client = TestClient(example("13").app)
    answer = client.post("/tickets", json={"text": "Ben Osei: the printer is slow. Low priority."})
    assert answer.status_code == 200
    assert set(answer.json()) == {"reporter", "product", "priority", "resolved"}
    assert client.post("/tickets", json={"text": 3}).status_code == 422
