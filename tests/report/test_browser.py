"""A written report in a real browser: sorting, tooltips, errors, requests, width."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Page

from interp.measurements.circuits.picture import circuit_picture
from interp.report.figures.bars_and_points import grouped_bars
from interp.report.glance import glance, headline
from interp.report.html import LONG, token_heat_map
from interp.report.page import FigureItem, PictureItem, Report, Section, TableItem
from interp.report.pairs import Number
from interp.report.write import write_report
from tests.measurements.circuits.test_picture import EDGES, PAIR
from tests.report.conftest import HOSTILE
from tests.report.test_pieces import plain

TABLE = pd.DataFrame({"model": ["b", "model-10", HOSTILE, "model-9", "a"], "all": "all"})
TABLE = TABLE.assign(accuracy=[0.5, np.nan, 0.5, -1.25, 10.0], n=[24, 0, 1200, 3, 7])
TABLE = TABLE[["model", "accuracy", "all", "n"]]

FIRST = pd.DataFrame(
    {"model": ["owner/a-long-name-of-a-model"], "share": 0.5, "low": 0.4, "high": 0.6, "n": 24}
)


@pytest.fixture(scope="module")
def file(attributions, pair, tmp_path_factory) -> Path:
    html = token_heat_map(
        attributions.token_shares(),
        prompts=pair,
        answers=attributions.answers,
        method="input_gradient",
        compared=("premise2", "premise1"),
    )
    draw = partial(grouped_bars, TABLE, x="all", y="accuracy", hue="model", n="n")
    items = (
        TableItem("accuracy", "Accuracy", TABLE, HOSTILE),
        FigureItem("bars", "Bars", draw),
        PictureItem("pair", "A pair", html),
        TableItem("long", "Long", pd.DataFrame({"model": "m", "n": range(LONG + 1)})),
    )
    numbers = headline(FIRST, "accuracy", value="share", n="n", unit="pairs")
    report = Report(
        "Study",
        "",
        (Section("All", "", items),),
        {"command": HOSTILE},
        glance=glance("What is asked?", numbers, ["Accuracy is 0.50; n = 24 pairs."]),
    )
    return write_report(report, tmp_path_factory.mktemp("report"))


@pytest.fixture
def page(browser, file) -> Iterator[Page]:
    """The report, opened from disk; whatever goes wrong on it, or leaves it, fails the test."""
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: wrong.append(request.url))
    page.goto(file.as_uri())
    yield page
    page.close()
    assert wrong == [file.as_uri()]


def models(page: Page) -> list[str]:
    return page.locator("#table-accuracy tbody tr td:first-child").all_inner_texts()


def test_clicks_and_keys_sort_by_number_and_leave_the_undefined_last(page):
    heading = page.locator("#table-accuracy th", has_text="accuracy")
    heading.get_by_role("button").click()
    assert models(page) == ["model-9", "b", HOSTILE, "a", "model-10"]
    assert heading.get_attribute("aria-sort") == "ascending"
    heading.get_by_role("button").click()
    assert models(page) == ["a", "b", HOSTILE, "model-9", "model-10"]
    assert heading.get_attribute("aria-sort") == "descending"
    page.locator("#table-accuracy .table-box").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert models(page) == [HOSTILE, "a", "b", "model-9", "model-10"]
    page.keyboard.press("Space")
    assert models(page) == ["model-10", "model-9", "b", "a", HOSTILE]
    for _ in range(3):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert models(page) == ["model-10", "model-9", "a", "b", HOSTILE]
    assert page.locator("#table-accuracy th[aria-sort]").all_inner_texts() == ["n"]


def test_a_token_shows_its_score_without_a_mouse_and_all_are_in_a_table(page, attributions):
    token = page.locator(".heat-map .denominator .token").first
    readout = token.locator(".readout")
    assert readout.bounding_box()["width"] == 1
    page.locator(".heat-map .denominator .token").nth(1).focus()
    page.keyboard.press("Shift+Tab")
    shares = attributions.token_shares()
    first = shares["prompt_id"] == shares["prompt_id"].iloc[0]
    scores = shares[first & (shares["method"] == "input_gradient")]
    score = scores.query("segment == 'premise1'")["share"].iloc[0]
    assert f"{score:.3f}, premise 1" in readout.inner_text()
    assert readout.bounding_box()["width"] > 60
    assert readout.evaluate("element => getComputedStyle(element).clipPath") == "none"
    page.get_by_text("Scores as a table").first.press("Enter")
    rows = page.locator(".heat-map details[open] tbody tr")
    assert rows.count() == len(scores) and rows.last.is_visible()


def test_names_that_hold_html_are_text_and_a_long_table_is_folded(page):
    assert page.title() == "Study"
    assert HOSTILE in models(page)
    assert page.locator("script").count() == 1
    table = page.locator("#table-long tbody")
    assert not table.is_visible()
    page.locator("#table-long summary").click()
    assert table.is_visible()
    assert table.locator("tr").count() == LONG + 1
    assert page.locator("#table-accuracy details").count() == 0


def test_a_click_on_a_component_leaves_only_its_edges_each_of_which_leads_to_its_pairs(
    browser, tmp_path
):
    of = {"model": "m", "method": "exact"}
    html = circuit_picture(EDGES, PAIR, group=2, name="c", label="Circuit", said="", of=of)
    ends = list(zip(EDGES["writer"], EDGES["reader"], strict=True))
    values = {"1": 1.0, "2": -2.0}
    numbers = [Number("effect", {**of, "writer": w, "reader": r}, values) for w, r in ends]
    items = (PictureItem("c", "Circuit", html),)
    report = Report("Study", "", (Section("All", "", items),), browser=plain(numbers=numbers))
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.goto(write_report(report, tmp_path).as_uri())

    def shown() -> int:
        lines = page.locator(".circuit path")
        return lines.evaluate_all(
            "all => all.filter(line => getComputedStyle(line).display !== 'none').length"
        )

    page.locator(".circuit input").last.check()
    assert shown() == len(EDGES) == page.locator(".circuit svg a").count()
    assert page.locator(".circuit .edges a").count() == 0
    page.locator('[data-node="a0.h1"]').focus()
    page.keyboard.press("Enter")
    assert shown() == 1
    page.locator('[data-node="m0"]').click()
    own = [f"{w} → {r}" for w, r in ends if w == "m0" or r == "m0"]
    listed = page.locator(".circuit .edges a")
    assert sorted(text.split(":")[0] for text in listed.all_inner_texts()) == sorted(own)
    assert shown() == 3
    page.locator('[data-node="m0"]').click()
    assert shown() == len(EDGES) and listed.count() == 0
    page.locator('[data-node="m0"]').click()
    chosen = listed.first.inner_text().split(":")[0].replace(" → ", ", ")
    listed.first.click()
    page.wait_for_selector("[data-ready]")
    assert page.get_by_label("sort by").input_value() == f"effect: m, exact, {chosen}"
    assert page.locator(".pair-number").all_inner_texts() == ["−2", "1"]
    page.close()
