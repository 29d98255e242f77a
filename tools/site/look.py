"""Looks at the built site in headless Chromium: every page in two widths, in light and dark, and without JavaScript.

    python tools/site/look.py [--pages A:B] [--pictures FOLDER] [PAGE ...]

For each page, axe (bundled with axe-playwright-python) reports contrast, headings, labels and names; a violation of the
level "serious" or "critical" is a defect. Other defects: a page that is wider than the screen, a picture that is not
shown, an error of a script, and a page whose text or links are not shown without JavaScript. `--pictures` writes a
screenshot of each view. `--pages 0:40` looks at the first 40 pages only, in alphabetical order. Each page is printed with its
time. Ends with status 1 and one line for each defect. `make site-look` installs what it needs.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

HTML = Path(__file__).resolve().parents[2] / "build" / "site" / "html"
WIDTHS = {"desktop": (1280, 900), "phone": (390, 844)}
SCHEMES = {"light": "default", "dark": "slate"}
LEVELS = {"serious", "critical"}
MAX_HEIGHT = 16_000
"""The height of the largest screenshot, in pixels."""

AXE = """
const done = arguments[arguments.length - 1];
axe.run(document, {resultTypes: ["violations"], preload: false, ...arguments[0]}).then(found => done(found.violations.map(one => ({
    id: one.id, impact: one.impact, help: one.help, count: one.nodes.length,
    first: one.nodes[0].html.slice(0, 160), why: (one.nodes[0].failureSummary || "").slice(0, 300)}))),
    error => done([{id: "axe", impact: "critical", help: String(error), count: 1, first: "", why: ""}]));
"""
SETTLED = """
const [width, done] = arguments;
let frames = 0;  // since the page has its new width; scripts of the page see it in the next frame
(function next() {
    frames = innerWidth === width ? frames + 1 : 0;
    if (frames > 2) done(); else requestAnimationFrame(next);
})();
"""
COLOURS = {"runOnly": ["color-contrast", "link-in-text-block"]}
"""The rules of axe that depend on the colours; the others need one run for each width."""

LAYOUT = """
const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
const pictures = [...document.images].filter(one => one.complete && !one.naturalWidth).map(one => one.src);
const article = document.querySelector("article");
const clipped = [...article.querySelectorAll("p, li, h1, h2, h3, td")].filter(one => {
    const box = one.getBoundingClientRect();
    return box.width && box.right > innerWidth + 1 && !one.closest("table, pre");
}).map(one => one.textContent.trim().slice(0, 60));
const text = article.checkVisibility() ? article.innerText.trim().length : 0;
return {wide, pictures, clipped, text, links: document.querySelectorAll("nav a").length};
"""


def axe_source() -> str:
    """Returns the script of axe from the installed package, without importing it."""
    spec = importlib.util.find_spec("axe_playwright_python")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("axe is not installed: run make site-look")
    return (Path(spec.submodule_search_locations[0]) / "axe.min.js").read_text("utf-8")


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serves a folder on loopback, and yields its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def browser() -> Iterator[Any]:
    """Starts Chromium without a window, and yields its driver."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    chromium, driver = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")
    if not (chromium and driver):
        raise SystemExit("needs Chromium: apt-get install chromium chromium-driver, or the like")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "SEVERE"})
    found = webdriver.Chrome(options=options, service=Service(driver))
    found.set_script_timeout(180)
    try:
        yield found
    finally:
        found.quit()


def set_view(driver: Any, width: str, *, scripts: bool = True) -> None:
    """Sets the size of the screen, and whether scripts of pages run."""
    x, y = WIDTHS[width]
    metrics = {"width": x, "height": y, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-reduced-motion", "value": "reduce"}]  # colours change at once
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not scripts})
    if scripts:
        driver.execute_async_script(SETTLED, x)


def layout_defects(driver: Any) -> list[str]:
    """Returns what does not fit or is not shown in the current view."""
    found = driver.execute_script(LAYOUT)
    defects = [f"a picture is not shown: {name}" for name in found["pictures"]]
    if found["wide"] > 1:
        defects.append(f"the page is {found['wide']} pixels wider than the screen")
    defects += [f"text is outside of the screen: {text!r}" for text in found["clipped"][:3]]
    if found["text"] < 10 or found["links"] < 3:
        defects.append(f"the page shows {found['text']} characters and {found['links']} links of the navigation")
    return defects


def axe_defects(driver: Any, options: dict[str, Any]) -> list[str]:
    """Returns the serious and critical violations that axe finds in the current view."""
    found = driver.execute_async_script(AXE, options)
    return [
        f"{one['impact']}: {one['id']} ({one['count']}): {one['help']}: {one['first']} {' '.join(one['why'].split())}"
        for one in found
        if one["impact"] in LEVELS
    ]


def write_picture(driver: Any, file: Path) -> None:
    """Writes a screenshot of the whole page."""
    import base64

    size = driver.execute_script("return [innerWidth, document.documentElement.scrollHeight]")
    clip = {"x": 0, "y": 0, "width": size[0], "height": min(size[1], MAX_HEIGHT), "scale": 1}
    options = {"captureBeyondViewport": True, "clip": clip}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(base64.b64decode(driver.execute_cdp_cmd("Page.captureScreenshot", options)["data"]))


def look_at(driver: Any, address: str, page: str, axe: str, pictures: Path | None) -> list[str]:
    """Returns the defects of one page in all views."""
    found = []
    set_view(driver, "desktop")
    driver.get(f"{address}/{page}")
    driver.execute_script(axe)
    for scheme, value in SCHEMES.items():
        rules = {} if scheme == "light" else COLOURS
        driver.execute_script("document.body.setAttribute('data-md-color-scheme', arguments[0])", value)
        for width in WIDTHS:
            set_view(driver, width)
            view = f"{page} ({width}, {scheme})"
            found += [f"{view}: {defect}" for defect in layout_defects(driver) + axe_defects(driver, rules)]
            if pictures:
                write_picture(driver, pictures / f"{page.replace('/', '-').removesuffix('.html')}.{width}.{scheme}.png")
    messages = [str(entry["message"]) for entry in driver.get_log("browser")]
    # Material requests the list of versions, which exists after `mike deploy`.
    found += [f"{page}: {message[:200]}" for message in messages if "/versions.json" not in message]
    set_view(driver, "phone", scripts=False)
    driver.get(f"{address}/{page}")
    found += [f"{page} (without JavaScript): {defect}" for defect in layout_defects(driver)]
    return found


def part_of(text: str) -> slice:
    """Returns the slice of a range such as "0:40", ":40" or "40:"."""
    start, colon, end = text.partition(":")
    if not colon or not all(one.isdecimal() or not one for one in (start, end)):
        raise SystemExit(f"--pages must be a range such as 0:40, got {text!r}")
    return slice(int(start or 0), int(end) if end else None)


def main(arguments: list[str] | None = None) -> int:
    """Prints all defects and returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("pages", nargs="*", help="pages, relative to build/site/html; all if none is given")
    parser.add_argument("--pages", dest="part", default=":", help="a range such as 0:40 of the pages")
    parser.add_argument("--pictures", type=Path, help="the folder for screenshots")
    options = parser.parse_args(arguments)
    pages = options.pages or sorted(path.relative_to(HTML).as_posix() for path in HTML.rglob("*.html"))
    pages = pages[part_of(options.part)]
    axe, lines = axe_source(), []
    with served(HTML) as address, browser() as driver:
        for number, page in enumerate(pages, 1):
            started = time.monotonic()
            found = look_at(driver, address, page, axe, options.pictures)
            seconds = time.monotonic() - started
            print(f"{number}/{len(pages)} {page}: {len(found)} defects, {seconds:.1f} s", *found, sep="\n", flush=True)
            lines += found
    print(f"{len(pages)} pages, {len(pages) * (len(WIDTHS) * len(SCHEMES) + 1)} views, {len(lines)} defects")
    return 1 if lines or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
