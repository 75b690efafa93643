"""The browser of pairs in a real browser: filters, addresses, links from numbers, hostile texts."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from playwright.sync_api import Page

from interp.report.browse import in_frame, standalone, write_browser
from interp.report.figures.bars_and_points import grouped_bars
from interp.report.figures.lines import lines
from interp.report.figures.style import mark_areas, new_axes
from interp.report.page import FigureItem, Report, Section, TableItem
from interp.report.pairs import Number
from interp.report.words import words_of
from interp.report.write import write_report
from tests.report.conftest import HOSTILE
from tests.report.test_page import PROMPTS
from tests.report.test_pieces import many, plain

BY_CITY = pd.DataFrame(
    [
        ("m", "Rome", "paired", 0.5, 1.0),
        ("m", "Paris", "b", 0.0, 1.0),
        ("n", "Rome", "paired", np.nan, 1.0),
        ("m", "Oslo", "paired", 0.5, 1.0),
        ("published", "Rome", "paired", 0.5, 1.0),
        ("m", "all", "b", 0.5, np.nan),
    ],
    columns=["model", "city", "measure", "accuracy", "a_accuracy"],
)
CELLS = pd.DataFrame(
    [("m", "y", 0, "all", 0.5), ("m", "x", 1, "yes", 0.5)],
    columns=["model", "site", "layer", "recognized", "effect"],
)
LEVELS = pd.DataFrame(
    {"factor": ["city", "all"], "level": ["Paris", "all"], "measure": "largest", "mean": 0.5}
)
GRID = pd.DataFrame({"model": "m", "site": "x", "role": [HOSTILE] * 3 + ["other"] * 3})
GRID = GRID.assign(layer=[0, 1, 2] * 2, effect=[0.5, -1.5, 2.0, 0.0, 1.0, np.nan])
TESTS = pd.DataFrame(
    [("city", "Rome", "Paris", 0.5), ("city", "Rome", "Oslo", 0.5), ("other", "x", "y", 0.5)],
    columns=["factor", "first", "second", "difference"],
)
FIT = pd.DataFrame({"term": ["intercept", "city"], "estimate": [0.5, np.nan]})
LAYERS = pd.DataFrame(
    {"model": "m", "site": "x", "layer": [0, 1], "role": "other", "effect": [0.5, 1.5], "n": 2}
)
VERDICTS = pd.DataFrame({"method": ["gradient"], "m": ["0.50 [0.25, 0.75] trust"], "n": ["0.10"]})

SIZES = {"1": -3.0, "2": 1.5}


def drawn_grid() -> Axes:
    ax = new_axes(width=4, height=2)
    ax.imshow(GRID["effect"].to_numpy().reshape(2, 3))
    names = {"rows": [HOSTILE, "other"], "columns": [0, 1, 2]}
    mark_areas(ax, GRID, x="layer", y="role", number="effect", **names)
    return ax


def drawn_lines() -> Axes:
    return lines(LAYERS, x="layer", y="effect", hue="role", n="n")


def drawn_bars() -> Axes:
    table = BY_CITY.iloc[:3].assign(model=["m", "m", "n"], n=2, accuracy=[0.5, 0.0, np.nan])
    return grouped_bars(table, x="city", y="accuracy", hue="model", n="n")


def report(prompts=PROMPTS) -> Report:
    largest = Number("largest", {"model": "m", "site": "x"}, SIZES)
    numbers = [largest, Number("effect", {"model": "m", "site": "x", "layer": "1"}, SIZES)]
    numbers += [Number("effect", {"model": "m", "site": "x", "layer": "0", "role": "other"}, SIZES)]
    items = (
        TableItem("by_city", "By city", BY_CITY),
        TableItem("cells", "Cells", CELLS),
        TableItem("verdicts", "Verdicts", VERDICTS),
        FigureItem("grid", "Grid", drawn_grid),
        TableItem("levels", "Levels", LEVELS, pairs={"same": "x", "city": "Rome"}),
        TableItem("tests", "Tests", TESTS),
        TableItem("fit", "Fit", FIT, pairs={"city": "Rome"}),
        TableItem("copied", "Copied", FIT, no_pairs="published"),
        FigureItem("lines", "Lines", drawn_lines),
        FigureItem("bars", "Bars", drawn_bars),
        TableItem("columns", "Columns", pd.DataFrame({"model": ["m"], "Paris": 0.5, "b": 1.5})),
    )
    browser = plain(prompts, numbers=numbers, cluster="city")
    return Report(HOSTILE, "", (Section("All", "", items),), browser=browser)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    texts = ["One at Ünïcode 𝔸 place?", f"One {HOSTILE} place?", "Three?", "Four?"]
    hostile = PROMPTS.assign(text=texts, gold=HOSTILE, premise1_start=4, premise1_end=7)
    path = tmp_path_factory.mktemp("report")
    write_report(report(hostile), path)
    return path


@pytest.fixture
def page(browser, folder) -> Iterator[Page]:
    """A page of the folder; whatever goes wrong on it, or leaves the folder, fails the test."""
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.set_default_timeout(60_000)  # which only what hangs takes, on slow machines too
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: wrong.append(request.url))
    page.goto((folder / "pairs.html").as_uri())
    page.wait_for_selector("[data-ready]")
    yield page
    page.close()
    assert [one for one in wrong if not one.startswith(f"{folder.as_uri()}/")] == []


def listed(page: Page) -> list[str]:
    """The ids of the pairs in the list."""
    return page.locator(".pair-list b").all_inner_texts()


def choose(page: Page, label: str, value: str) -> None:
    page.locator(".pair-chooser").get_by_label(label, exact=True).select_option(value)
    settled(page)


def settled(page: Page) -> None:
    page.wait_for_selector("#pairs-browser[data-ready]")


def test_pairs_are_chosen_by_factor_side_answers_and_words(page):
    assert listed(page) == ["1", "2"]
    choose(page, "city (cluster)", "Paris")
    assert listed(page) == ["2"]
    page.get_by_role("button", name="Clear").click()
    settled(page)
    choose(page, "answers", "right")
    assert listed(page) == ["2"] * 0  # no model answers both sides of a pair correctly
    choose(page, "answers", "one")  # model m answers both sides of 2 wrongly
    assert listed(page) == ["1"]
    choose(page, "answers", "none")
    assert listed(page) == ["2"]
    choose(page, "answers", "right")
    choose(page, "side", "a")
    assert listed(page) == ["1"]
    choose(page, "answers", "wrong")
    assert listed(page) == ["2"]
    choose(page, "side", "b")
    assert listed(page) == ["1", "2"]
    choose(page, "model", "n")
    assert listed(page) == ["1"]
    assert page.locator(".pair-list .pair-marks").inner_text() == "✓✗"
    page.get_by_role("button", name="Clear").click()
    page.get_by_label("id or words").fill("three")
    page.get_by_label("id or words").press("Enter")
    settled(page)
    assert listed(page) == ["2"]
    assert page.locator(".pair-chooser output").inner_text() == "1 of 2 pairs"
    for words, found in (("FOUR thr", ["2"]), ("ÜNÏ 𝔸", ["1"]), ("hree", []), ("1", ["1"])):
        page.get_by_label("id or words").fill(words)
        page.get_by_label("id or words").press("Enter")
        settled(page)
        assert listed(page) == found


def said(number: int) -> str:
    """The words of a pair of `many`."""
    return f"{number:07d} {number} judo"


@pytest.mark.slow
def test_a_search_reads_two_pieces_for_a_word(browser, tmp_path):
    pairs = 4_000
    write_browser(many(pairs), tmp_path, title="Study", page="report.html")
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.rpartition("/")[2]))
    page.goto((tmp_path / "pairs.html").as_uri())
    # Very many words begin by 0, which is looked for as a whole word.
    for word, whole in (("0", True), ("3", False), ("39", False), ("judo", False)):
        asked.clear()
        page.get_by_label("id or words").fill(word)
        page.get_by_label("id or words").press("Enter")
        settled(page)
        fits = [
            n
            for n in range(pairs)
            if any(own == word if whole else own.startswith(word) for own in words_of(said(n)))
        ]
        count = page.locator(".pair-chooser output").inner_text()
        assert count == f"{len(fits):,} of {pairs:,} pairs"
        assert sum(name[0] == "s" for name in asked) <= 2
    page.close()


def test_pairs_are_sorted_by_a_number_of_each(page):
    choose(page, "sort by", "effect: m, x, 1")
    assert listed(page) == ["1", "2"]
    assert page.locator(".pair-number").all_inner_texts() == ["−3", "1.5"]
    choose(page, "order", "high")
    assert listed(page) == ["2", "1"]
    choose(page, "order", "low")
    assert listed(page) == ["1", "2"]


@pytest.mark.slow
def test_a_pair_and_a_list_are_cited_by_their_address(page, browser):
    choose(page, "answers", "wrong")
    page.locator(".pair-list a").last.click()
    settled(page)
    assert page.locator(".pair-shown h2").inner_text() == "2"
    other = browser.new_page()
    other.goto(page.url)
    other.wait_for_selector("[data-ready]")
    assert other.locator(".pair-shown h2").inner_text() == "2"
    assert other.get_by_label("answers", exact=True).input_value() == "wrong"
    short = page.get_by_role("link", name="Address of this pair").get_attribute("href")
    for address in (short, "#pair=2", "#pair=2&at=0", "#pair=2&at=99"):
        other.goto("about:blank")
        other.goto(page.url.partition("#")[0] + address)
        other.wait_for_selector("[data-ready]")
        assert other.locator(".pair-shown h2").inner_text() == "2"
    other.goto(page.url.partition("#")[0] + "#pair=<b>")
    settled(other)
    assert other.locator(".pair-shown").inner_text() == "There is no pair <b>."
    other.close()
    page.go_back()
    settled(page)
    assert page.locator(".pair-shown h2").inner_text() == "1"


def test_prompts_stand_side_by_side_with_differences_marked_and_answers_judged(page):
    cards = page.locator(".pair-prompt")
    assert cards.count() == 2
    marked = [cards.nth(side).locator("mark").all_inner_texts() for side in range(2)]
    assert marked[0] == ["at", "Ünïcode", "𝔸"]
    assert "script" in marked[1]
    # Segments begin where Python counts, although letters outside the BMP take two units.
    assert cards.first.locator(".segment-name").all_inner_texts() == ["premise1"]
    assert cards.first.locator(".pair-text").inner_text().startswith("One premise1at")
    assert cards.first.locator("li").all_inner_texts() == ["m: Yes ✓", "n: Yes ✓"]
    boxes = [cards.nth(side).bounding_box() for side in range(2)]
    assert boxes[0]["y"] == boxes[1]["y"]


def test_hostile_texts_stay_texts_and_other_scripts_and_servers_are_refused(browser, folder):
    page = browser.new_page()
    page.goto((folder / "pairs.html").as_uri())
    page.wait_for_selector("[data-ready]")
    assert "taken over" not in page.title().replace(HOSTILE, "")
    assert HOSTILE in page.locator(".pair-prompt").nth(1).inner_text()
    assert HOSTILE in page.locator(".pair-panel").last.inner_text()
    # Only our script, and scripts of pieces from the folder.
    sources = page.evaluate("[...document.scripts].map(script => script.getAttribute('src'))")
    assert all(source is None or source.startswith("pairs/") for source in sources)
    assert sources.count(None) == 1
    page.evaluate("window.ran = false")
    page.evaluate(
        "() => { const own = document.createElement('script'); own.textContent = 'ran = true';"
        " document.head.append(own); }"
    )
    assert page.evaluate("window.ran") is False
    assert page.evaluate("fetch('http://127.0.0.1:9/').then(() => false, () => true)")
    page.close()


def test_the_keyboard_alone_finds_a_pair(page):
    page.get_by_label("answers", exact=True).focus()
    page.keyboard.press("w")  # wrong
    settled(page)
    page.locator(".pair-list a").first.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    settled(page)
    assert page.locator(".pair-shown h2").inner_text() == "2"
    # What was drawn again keeps the focus.
    assert page.evaluate("document.activeElement.getAttribute('aria-current')") == "true"
    page.get_by_role("link", name="← previous", exact=True).press("Enter")
    settled(page)
    assert page.locator(".pair-shown h2").inner_text() == "1"
    text = page.locator(".pair-panel .pair-text").first
    text.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.locator(".pair-readout").first.inner_text() == "e?: −1, premise1"


def chosen(page: Page, place: str) -> list[str]:
    """The parts of the addresses to which the links of a place lead."""
    links = page.locator(f"{place} a").all()
    return [str(link.get_attribute("href")).partition("#")[2] for link in links]


def test_each_number_leads_to_its_pairs_and_back(page, folder):
    page.goto((folder / "report.html").as_uri())
    rows = page.locator("#table-by_city tbody tr")
    assert rows.nth(2).locator("a").count() == 1  # what is undefined leads nowhere
    assert rows.nth(3).locator("a").count() == 0  # nor does what was not asked here
    assert rows.nth(4).locator("a").count() == 0
    rows.nth(1).locator("a").nth(0).press("Enter")  # the measure is a side
    page.wait_for_selector("[data-ready]")
    assert listed(page) == ["2"]
    chosen = {name: page.get_by_label(name, exact=True).input_value() for name in ("model", "side")}
    assert chosen == {"model": "m", "side": "b"}
    page.get_by_role("link", name="Back to the report").click()
    page.wait_for_url("**/report.html#table-by_city")
    rows.nth(0).locator("a").nth(1).click()  # the column is a side
    page.wait_for_selector("[data-ready]")
    assert listed(page) == ["1"]
    assert page.get_by_label("side", exact=True).input_value() == "a"


def test_a_row_leads_to_the_pairs_by_its_own_number(page, folder):
    page.goto((folder / "report.html").as_uri())
    cells = page.locator("#table-cells tbody tr")
    # A layer's number is no result, and names the cell.
    assert cells.nth(1).locator("a").count() == 1
    assert "sort" not in cells.nth(0).locator("a").get_attribute("href")
    # A column for each model leads to the pairs of each.
    verdicts = chosen(page, "#table-verdicts tbody")
    assert [link.partition("&")[0] for link in verdicts] == ["model=m", "model=n"]
    # A row's own value counts more than the table's; "same" is no factor that pairs differ in.
    first, second = chosen(page, "#table-levels tbody")
    assert first == "f.city=Paris&from=table-levels"
    assert "f.city=Rome" in second
    paris, b = chosen(page, "#table-columns tbody")
    assert "f.city=Paris" in paris and "f.city" not in b
    cells.nth(1).locator("a").click()
    page.wait_for_selector("[data-ready]")
    assert page.get_by_label("sort by").input_value() == "effect: m, x, 1"
    assert page.get_by_label("answers", exact=True).input_value() == "right"


@pytest.mark.slow
def test_each_cell_of_a_figure_leads_to_its_pairs(page, folder):
    page.goto((folder / "report.html").as_uri())
    cells = page.locator("#figure-grid a.cell")
    titles = [cell.text_content() for cell in cells.locator("title").all()]
    places = [f"role {HOSTILE.replace('_', ' ')}, layer {layer}" for layer in range(3)]
    places += ["role other, layer 0", "role other, layer 1"]  # and one without a number
    assert [title.partition(": ")[0] for title in titles] == places
    assert cells.nth(1).locator("path").bounding_box()["width"] > 50
    cells.nth(4).focus()
    page.keyboard.press("ArrowRight")  # there is no further cell
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.textContent").strip() == titles[1]
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-ready]")
    assert page.get_by_label("sort by").input_value() == "effect: m, x, 1"
    page.get_by_role("link", name="Back to the report").click()
    page.wait_for_url("**/report.html#figure-grid")
    for place, number in ((3, "effect: m, x, 0, other"), (0, "largest: m, x")):
        page.goto((folder / "report.html").as_uri())
        cells.nth(place).click()
        page.wait_for_selector("[data-ready]")
        assert page.get_by_label("sort by").input_value() == number


def test_a_test_of_two_values_leads_to_the_pairs_of_both_and_a_fit_to_all(page, folder):
    page.goto((folder / "report.html").as_uri())
    assert chosen(page, "#table-fit tbody") == ["f.city=Rome&from=table-fit"]
    assert chosen(page, "#table-copied tbody") == []
    copied = page.locator("#table-copied").inner_text()
    assert re.findall(r"(\d+) numbers? ha.*: published", copied) == ["1"]
    # Of this table, two numbers are about other prompts, and two were published.
    said = page.locator("#table-by_city .files").inner_text()
    assert re.findall(r"(\d+) numbers? ha", said) == ["2", "2"]
    assert len(re.findall(r"\d+ numbers? ha[^\n]*?: published", said)) == 1
    both, known, other = chosen(page, "#table-tests tbody")
    assert both == "f.city=Rome&f.city=Paris&from=table-tests"
    assert known == "f.city=Rome&from=table-tests"
    assert other == "from=table-tests"
    page.locator("#table-tests tbody a").first.click()
    page.wait_for_selector("[data-ready]")
    assert listed(page) == ["1", "2"]
    city = page.get_by_label("city (cluster)", exact=True)
    assert city.locator("option:checked").inner_text() == "Rome or Paris"
    choose(page, "side", "b")  # the other filters stay
    assert page.url.count("f.city=") == 2
    choose(page, "city (cluster)", "Paris")
    assert listed(page) == ["2"] and page.url.count("f.city=") == 1
    assert city.locator("option").count() == 3


def test_points_and_bars_of_a_figure_lead_to_their_pairs(page, folder):
    page.goto((folder / "report.html").as_uri())
    first, second = chosen(page, "#figure-lines svg")
    assert first == "model=m&sort=effect%3A+m%2C+x%2C+0%2C+other&from=figure-lines"
    assert "effect%3A+m%2C+x%2C+1" in second
    titles = page.locator("#figure-lines a.cell title").all_text_contents()
    assert titles == [
        f"layer {n}, role other: {v}; show the pairs" for n, v in ((0, 0.5), (1, 1.5))
    ]
    bars = chosen(page, "#figure-bars svg")  # one bar is undefined
    assert bars == [f"model=m&f.city={city}&from=figure-bars" for city in ("Rome", "Paris&side=b")]
    page.locator("#figure-lines a.cell").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-ready]")
    assert page.get_by_label("sort by").input_value() == "effect: m, x, 1"


def test_a_piece_that_is_missing_is_said(browser, tmp_path):
    write_report(report(), tmp_path)
    (tmp_path / "pairs" / "d0.js").unlink()
    page = browser.new_page()
    page.goto((tmp_path / "pairs.html").as_uri())
    page.wait_for_selector("[data-ready]")
    assert "pairs/d0.js cannot be read" in page.locator(".pair-shown").inner_text()
    page.close()


@pytest.mark.slow
def test_a_page_in_one_file_has_its_pairs_within(browser, tmp_path):
    file = write_report(report(), tmp_path, embed=True)
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    page.wait_for_selector("[data-ready]")
    page.locator("#table-by_city a").nth(1).click()
    settled(page)
    assert listed(page) == ["1"]
    assert page.locator(".pair-shown h2").is_visible()
    assert asked == [file.as_uri()]
    page.close()


def test_a_notebook_shows_pairs_in_a_frame(browser):
    page = browser.new_page()
    page.set_content(in_frame(standalone(many(30), HOSTILE), height=700))
    frame = page.frame_locator("iframe")
    frame.locator("[data-ready]").wait_for()
    assert frame.locator(".pair-list a").count() == 20
    frame.get_by_role("link", name="next 20 →").click()
    frame.locator("[data-ready]").wait_for()
    assert frame.locator(".pair-list a").count() == 10
    page.close()


def test_without_scripts_the_report_is_whole(browser, folder):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((folder / "report.html").as_uri())
    assert page.locator("#table-by_city tbody tr").count() == len(BY_CITY)
    assert page.locator(".drill, .cell, th button").count() == 0
    assert page.locator("#figure-grid svg").get_attribute("role") == "img"
    assert page.locator("#figure-grid svg").is_visible()
    context.close()
