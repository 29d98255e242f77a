"""The playground in headless Chromium. `make test-browser` installs Selenium; Chromium and its driver must be on PATH.

GUIDEWAY_SCREENSHOTS names a folder for screenshots: light, dark, and of the width of a phone.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ..helpers.serving import LiveServer, live_server, served_tiny

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = [
    pytest.mark.engine("selenium"),
    pytest.mark.skipif(
        not (CHROMIUM and DRIVER), reason="needs Chromium: apt-get install chromium chromium-driver, or the like"
    ),
]
SECONDS = 60.0


class Page:
    """The page in a browser."""

    def __init__(self, driver: Any, url: str) -> None:
        self.driver = driver
        driver.get(url)
        self.until(lambda: self.text("state"))

    def until(self, condition: Callable[[], Any]) -> Any:
        end = time.monotonic() + SECONDS
        while not (found := condition()):
            assert time.monotonic() < end, f"state: {self.text('state')!r}, result: {self.text('result')!r}"
            time.sleep(0.05)
        return found

    def one(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def all(self, selector: str) -> list[Any]:
        return list(self.driver.find_elements("css selector", selector))

    def text(self, name: str) -> str:
        return str(self.driver.execute_script("return document.getElementById(arguments[0]).textContent", name))

    def run(self, script: str, *arguments: object) -> Any:
        return self.driver.execute_script(script, *arguments)

    def choose(self, kind: str, source: str | None = None) -> None:
        """Select a kind of constraint, and write it."""
        self.one(f"input[name=kind][value={kind}]").click()
        if source is not None:
            self.run(
                "const box = document.getElementById('source'); box.value = arguments[0];"
                "box.dispatchEvent(new Event('input'))",
                source,
            )

    def state(self, words: str) -> None:
        self.until(lambda: words in self.text("state"))

    def generate(self) -> str:
        """Press the button, and return the text of the tokens."""
        self.one("#run").click()
        self.until(lambda: self.text("result").startswith(("Complete", "The token limit")))
        return self.output()

    def output(self) -> str:
        return "".join(self.run("return [...document.querySelectorAll('.token')].map(one => one.textContent)"))

    def marked(self) -> str:
        return str(
            self.run("const found = document.querySelector('#marks mark'); return found ? found.textContent : ''")
        )


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with served_tiny() as model, live_server({"tiny": model}) as live:
        yield live


def opened(width: int = 1280, height: int = 1000, scheme: str = "light") -> Any:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for one in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(one)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver: Any = webdriver.Chrome(options=options, service=Service(DRIVER))
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    return driver


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    made = opened()
    yield made
    made.quit()


@pytest.fixture
def page(driver: Any, server: LiveServer) -> Page:
    return Page(driver, server.url)


def without_end(text: str) -> str:
    return text.removesuffix("⟨end⟩")


def test_a_schema_is_explained_and_enforced(page: Page) -> None:
    page.state("valid: 10 of 10 keywords enforced")
    assert [row.text for row in page.all("#keywords tr")][1] == "(the whole schema) type enforced"
    value = json.loads(without_end(page.generate()))
    assert list(value) == ["name", "age", "city"]
    assert page.all(".token.forced")
    errors = [one for one in page.driver.get_log("browser") if one["level"] == "SEVERE"]
    assert not errors, "the policy blocks nothing that the page needs"


@pytest.mark.parametrize(
    ("kind", "source", "words", "where", "marked"),
    [
        ("schema", '{\n  "type": "objec"\n}', "got 'objec'", "line 2, column 3", '"type"'),
        ("schema", '{"type": }', "not JSON", "line 1, column 10", "}"),
        (
            "schema",
            '{"properties": {"a": {"minimum": 5, "maximum": 3, "type": "integer"}}, "required": ["a"], "type": "object"}',
            "no text can fit",
            "line 1",
            '"required"',
        ),
        ("type", "name: str\nage: number", "unknown type number", "line 2, column 6", "n"),
        ("regex", "ab(c", "expected ')'", "line 1, column 3", "("),
        ("lark", 'start: "a" b\nb: "x" | foo', "'foo' is not defined", "line 2, column 10", "f"),
        (
            "tools",
            '[{"type": "function", "function": {"name": "f", "parameters": {"type": "objec"}}}]',
            "must be object, got 'objec'",
            "line 1, column 64",
            '"type"',
        ),
    ],
)
def test_errors_are_shown_at_their_place(
    page: Page, kind: str, source: str, words: str, where: str, marked: str | None
) -> None:
    page.choose(kind, source)
    page.state(words)
    assert where in page.text("state")
    assert page.one("#source").get_attribute("aria-invalid") == "true"
    if marked is not None:
        assert page.marked() == marked
    page.one("#where").click()
    assert page.run("return document.activeElement.id") == "source"


def test_a_refused_keyword_is_listed(page: Page) -> None:
    page.choose("schema", '{"type": "string", "pattern": "(a)\\\\1"}')
    page.until(lambda: page.one("#source").get_attribute("aria-invalid"))
    page.state("a back-reference is not supported")
    assert page.marked() == '"pattern"'
    assert page.one("tr.refused").text == "(the whole schema) pattern refused"


def test_types_become_schemas(page: Page) -> None:
    page.choose("type", 'name: str  # a comment\ntags: list[Literal["a", "b"]] | None\ncount: dict[str, int]')
    page.state("valid")
    schema = json.loads(page.text("schema"))
    assert schema == {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "tags": {"anyOf": [{"type": "array", "items": {"enum": ["a", "b"]}}, {"type": "null"}]},
            "count": {"type": "object", "additionalProperties": {"type": "integer"}},
        },
        "required": ["name", "tags", "count"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("kind", "source", "beginning"),
    [
        ("regex", "[ab]{4}!", ("a", "b")),
        ("lark", 'start: "yes" | "no"', ("yes", "no")),
        ("tools", None, ("<tool_call>",)),
    ],
)
def test_other_constraints(page: Page, kind: str, source: str | None, beginning: tuple[str, ...]) -> None:
    page.choose(kind, source)
    page.state("valid")
    assert page.generate().startswith(beginning)


def test_a_prompt_without_a_constraint(page: Page) -> None:
    page.one("input[name=mode][value=prompt]").click()
    page.choose("none")
    assert not page.one("#constraint").is_displayed()
    assert page.generate()
    assert '"prompt": "Ada' in page.text("body")


def test_another_token_is_chosen_and_the_text_continues(page: Page) -> None:
    page.choose("regex", "[abcdef]{12}")
    page.state("valid")
    before = page.generate()
    tokens = page.run("return tokens.map(one => one.id)")
    page.all(".token")[2].click()
    page.until(lambda: "allowed here" in page.text("detail"))
    other = page.one("#detail button")
    chosen = int(other.get_attribute("data-id"))
    assert page.all("#detail s"), "tokens that the constraint removed are shown"
    other.click()
    page.until(lambda: page.text("result").startswith("Complete"))
    after = page.run("return tokens.map(one => one.id)")
    assert after[:2] == tokens[:2]
    assert after[2] == chosen != tokens[2]
    assert len(page.all(".token.chosen")) == 1
    text = without_end(page.output())
    assert len(text) == 12
    assert set(text) <= set("abcdef")
    assert text != before


def test_fields_are_marked_in_the_output_and_selected_in_the_input(page: Page) -> None:
    schema = {"properties": {"name": {"const": "Ada"}}, "required": ["name"], "additionalProperties": False}
    page.choose("schema", json.dumps({"type": "object", **schema}))
    page.state("valid")
    value = json.loads(without_end(page.generate()))
    (row,) = page.all("#fields tr")[1:]
    cells = [cell.text for cell in row.find_elements("css selector", "td")]
    assert cells[:2] == ["/name", '"Ada"']
    assert cells[2].endswith(" %")
    assert cells[3] == "0–3"
    name, place = row.find_elements("css selector", "button")
    name.click()
    marked = "".join(page.run("return [...document.querySelectorAll('.token.inside')].map(one => one.textContent)"))
    assert value["name"] in marked
    assert len(marked) < len(page.output())
    place.click()
    selected = "const box = document.activeElement; return box.value.slice(box.selectionStart, box.selectionEnd)"
    assert page.run(selected) == "Ada"
    page.choose("regex", "[ab]{4}")
    page.state("valid")
    page.generate()
    assert not page.all("#fields tr"), "other texts have no fields"


def test_the_keyboard_is_enough(page: Page) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    def press(*keys: str) -> None:
        ActionChains(page.driver).send_keys(*keys).perform()

    page.choose("regex", "[abcdef]{12}")
    page.state("valid")
    ActionChains(page.driver).key_down(Keys.CONTROL).send_keys(Keys.ENTER).key_up(Keys.CONTROL).perform()
    page.until(lambda: page.text("result").startswith("Complete"))
    page.run("document.getElementById('reply').focus()")
    press(Keys.TAB)
    assert page.run("return document.activeElement.id") == "output"
    press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert page.one(".token[aria-selected=true]").get_attribute("id") == "token1"
    first = page.run("return tokens[1].id")
    press(Keys.ENTER)
    page.until(lambda: page.run("return document.activeElement.closest('#detail') !== null"))
    press(Keys.ENTER)
    page.until(lambda: page.text("result").startswith("Complete") and page.run("return tokens[1].id") != first)
    press(Keys.ESCAPE)


def test_texts_are_never_markup(page: Page) -> None:
    page.choose("regex", "<img src=x onerror=window\\.broken=1><script>window\\.broken=1</script>")
    page.state("valid")
    assert without_end(page.generate()).startswith("<img src=x")
    page.all(".token")[0].click()
    page.until(lambda: "allowed here" in page.text("detail"))
    page.choose("schema", '{"<img src=x onerror=window.broken=1>": 1, "type": "<b>"}')
    page.until(lambda: page.one("#source").get_attribute("aria-invalid"))
    assert page.run("return window.broken") is None
    assert not page.all("#output img, #detail img, #state img, #keywords img, #state b")


def test_stop_ends_a_generation(page: Page) -> None:
    page.choose("regex", "[a-z ]{400}")
    page.state("valid")
    page.run("document.getElementById('max_tokens').value = '450'")
    page.one("#run").click()
    page.until(lambda: len(page.all(".token")) > 3)
    page.one("#stop").click()
    page.until(lambda: page.text("result") in ("Stopped.",) or page.text("result").startswith("Complete"))
    assert not page.one("#stop").is_enabled()


def test_an_error_of_the_server_is_shown(page: Page) -> None:
    page.choose("regex", "[a-z]{50}")
    page.state("valid")
    page.run("document.getElementById('max_tokens').value = '2'")
    page.one("#run").click()
    page.until(lambda: page.one("#result").get_attribute("class") == "state bad")
    assert "max_tokens" in page.text("result")


@pytest.mark.parametrize(
    ("name", "width", "height", "scheme"),
    [("light", 1280, 1000, "light"), ("dark", 1280, 1000, "dark"), ("phone", 390, 1700, "light")],
)
def test_layout(server: LiveServer, tmp_path: Path, name: str, width: int, height: int, scheme: str) -> None:
    driver = opened(width, height, scheme)
    try:
        page = Page(driver, server.url)
        page.generate()
        page.all(".token")[6].click()
        page.until(lambda: "allowed here" in page.text("detail"))
        page.run("window.scrollTo(0, 0)")
        folder = Path(os.environ.get("GUIDEWAY_SCREENSHOTS", tmp_path))
        folder.mkdir(parents=True, exist_ok=True)
        assert driver.save_screenshot(str(folder / f"{name}.png"))
        assert page.run("return document.documentElement.scrollWidth") <= width, "nothing is wider than the window"
        background = page.run("return getComputedStyle(document.body).backgroundColor")
        red = int(background.partition("(")[2].partition(",")[0])
        assert (red < 80) == (scheme == "dark")
    finally:
        driver.quit()


def test_a_key_is_requested(tmp_path: Path) -> None:
    with served_tiny() as model, live_server({"tiny": model}, api_keys=("secret-key",)) as live:
        driver = opened()
        try:
            driver.get(live.url)
            page = Page.__new__(Page)
            page.driver = driver
            page.until(lambda: "key" in page.text("result"))
            field = page.one("#key")
            assert field.is_displayed()
            field.send_keys("secret-key\t")
            page.until(lambda: page.text("state").startswith("valid"))
            assert json.loads(without_end(page.generate()))
        finally:
            driver.quit()
