"""Make the pictures of README.md: `python docs/pictures.py`, with a Chromium on the PATH.

1. A study of the packaged models, in a temporary folder; the picture shows its report, scrolled
   to a figure.
2. The heat map of one pair, by the input gradient.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

import interp

IMAGES = Path(__file__).parent / "images"
PAIRS = 120
FIGURE = "#figure-figure4_accuracy"
MODEL = "organism/phi3-deep"
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run"]


def main() -> None:
    """Write the pictures next to this file."""
    programs = map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
    program = next(filter(None, programs), None)
    if program is None:
        sys.exit("no chromium or google-chrome on the PATH; install one")
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        picture_of_report(browser, Path(folder))
        picture_of_heat_map(browser)
        browser.close()


def picture_of_report(browser: Browser, folder: Path) -> None:
    """A screenshot of a study's report."""
    names = interp.organism_names("rulebreakers")
    study = interp.run(interp.study("rulebreakers"), models=names, limit=PAIRS, out=folder / "all")
    page = browser.new_page(viewport={"width": 1200, "height": 620})
    page.goto((study.folder / "report.html").as_uri())
    page.locator(FIGURE).evaluate("figure => figure.scrollIntoView()")
    page.screenshot(path=IMAGES / "report.png")


def picture_of_heat_map(browser: Browser) -> None:
    """Both sides of a pair about a city, each token shaded by its share of the score."""
    prompts = interp.load_prompts(limit=24)
    city = next(p.pair_id for p in prompts if p.factors["entity_group"] == "geographical")
    pair = [prompt for prompt in prompts if prompt.pair_id == city]
    model = interp.load_model(MODEL, device="cpu")
    result = interp.attribute(model, pair, methods=("input_gradient",), keep_tokens=True)
    page = browser.new_page(viewport={"width": 760, "height": 800})
    page.set_content(f"<body>{result.heat_map().html}</body>")
    page.locator(".heat-map").screenshot(path=IMAGES / "heat_map.png")


if __name__ == "__main__":
    main()
