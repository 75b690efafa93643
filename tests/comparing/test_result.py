"""The page, figure and browser of a comparison, and the same call in Python."""

import json

import pytest

import interp
from interp.cli import main
from interp.errors import UserError
from interp.report.figures.style import NOTHING_SHOWN
from tests.support.logs import NO, YES, archive, letters, log, question, samples, table


@pytest.fixture
def logs(tmp_path):
    one = archive(tmp_path / "a.eval", log(letters(YES)))
    return [one, samples(tmp_path / "b.jsonl", NO)]


def test_python_and_the_command_show_the_same(logs, capsys):
    found = interp.compare(*map(str, logs))
    assert main(["compare", *map(str, logs)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.index("20 items are in both") < out.index("Differences between logs")
    assert found.compared.sentences()[0] in out
    assert found.to_frame()["difference"].tolist() == [0.5]
    assert found.plot().axes
    assert found.table("answers")["correct"].astype(int).tolist() == [*YES, *NO]
    assert (found.measured.models(), found.measured.facts()) == (["match and acc"], {})


def test_the_page_begins_with_a_sentence_and_its_browser_shows_where_logs_disagree(logs, tmp_path):
    page = tmp_path / "out" / "page.html"
    page.parent.mkdir()
    assert main(["compare", *map(str, logs), "--out", str(page)]) == 0
    html = page.read_text()
    first = html[html.index('<p class="asked">') :].split("<", 2)[1].split(">")[1]
    (expected,) = interp.compare(*logs).compared.sentences()
    assert first == expected
    assert (page.parent / "figures" / "differences.png").exists()
    details = (page.parent / "pairs" / "d0.js").read_text()
    pairs = json.loads(details[details.index("[") : details.rindex("]") + 1])
    assert {own["id"] for own in pairs} == {str(n) for n in range(20) if YES[n] != NO[n]}
    texts = [own["text"] for own in pairs[0]["prompts"]]
    assert texts == [
        f"{question(0)}\n\ncompletion 0 C",
        f"Question: {question(0)}\nAnswer:\n\n5",
    ]


def test_the_browser_shows_both_texts_of_chosen_items(logs):
    shown = interp.compare(*logs).browse(["0"])
    assert "completion 0 C" in shown._repr_html_() if hasattr(shown, "_repr_html_") else str(shown)
    with pytest.raises(UserError, match="pair"):
        interp.compare(*logs).browse(["1"])  # on which both are wrong


def test_numbers_without_letters_are_told_in_their_own_unit(tmp_path):
    files = [table(tmp_path / "a.csv", [7.5, 8, 9, 8.5] * 5), table(tmp_path / "b.csv", [6.5] * 20)]
    (told,) = interp.compare(*files).compared.sentences()
    assert told.startswith("a scores 1.75 [")
    answers = interp.compare(*files).table("answers")
    assert answers["correct"].isna().all()


def test_the_first_screen_is_about_all_items_and_leads_to_those_that_differ(tmp_path):
    levels = ["apart" if a != b else "alike" for a, b in zip(YES, NO, strict=True)]
    files = [samples(tmp_path / name, own, level=levels) for name, own in (("a", YES), ("b", NO))]
    found = interp.compare(*files, by="level")
    assert found.to_frame()["difference"].tolist() == [0.5, 0, 1]
    numbers = found.opening().numbers
    assert numbers[["number", "value"]].values.tolist() == [["difference in acc", 0.5]]
    (led,) = interp.compare(*files).links()
    assert led.headline == "difference in acc"


@pytest.mark.parametrize(("other", "said"), [(YES, True), (NO, False)])
def test_a_picture_without_a_difference_says_so(tmp_path, other, said):
    other = other if not said else [*YES[1:], YES[0]]
    found = interp.compare(*(samples(tmp_path / n, own) for n, own in (("a", YES), ("b", other))))
    assert (NOTHING_SHOWN in found.plot().axes[0].get_xlabel()) == said


def test_one_log_and_an_unknown_way_of_pairing_are_refused(logs):
    with pytest.raises(UserError, match="fewer than two logs"):
        interp.compare(logs[0])
    with pytest.raises(UserError, match=r"pair.*texts"):
        interp.compare(*logs, pair="texts")


def test_the_metric_may_be_one_name(logs):
    with pytest.raises(UserError, match="unknown metric 'm'"):
        interp.compare(*logs, metric="m")
