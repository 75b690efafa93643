"""Samples of lm-eval are read once for all of its filters, and log-likelihoods tell the option."""

import pytest

from interp.errors import UserError
from interp.stored.read import read_outputs
from tests.support.stored import lines


def sample(resps, *, filter_="", filtered=(), arguments=(), name="1/a"):
    more = {"filter": filter_, "filtered_resps": list(filtered)} if filter_ else {}
    asked = [{f"arg_{n}": one for n, one in enumerate(own)} for own in arguments]
    given = {f"gen_args_{n}": own for n, own in enumerate(asked)}
    return {"doc": {"prompt_id": name}, "arguments": given, "resps": resps, **more}


def test_a_copy_for_each_filter_is_no_draw(tmp_path, capsys):
    records = [
        sample([["a.</think>Yes", "b.</think>No"]], filter_=kind, filtered=["?"], name=name)
        for kind in ("strict-match", "flexible-extract")
        for name in ("1/a", "1/b")
    ]
    found = read_outputs(lines(tmp_path / "s.jsonl", records))
    expected = [(name, draw) for name in ("1/a", "1/b") for draw in (0, 1)]
    assert [(own.prompt_id, own.draw) for own in found] == expected
    assert [own.answer for own in found] == ["Yes", "No"] * 2
    told = capsys.readouterr().err
    assert "strict-match" in told and "flexible-extract" in told


def test_the_only_filter_gives_the_answer_and_the_text_keeps_its_thought(tmp_path, capsys):
    one = sample([["Hm.</think>I say #### Yes"]], filter_="strict", filtered=["Yes"])
    every = sample([["a</think>No", "Yes"]], filter_="strict", filtered=["Yes"])
    found = read_outputs(lines(tmp_path / "s.jsonl", [one, every]))
    assert [own.answer for own in found] == ["Yes", "No", "Yes"]
    assert found[0].text.startswith("Hm.</think>") and not capsys.readouterr().err


ASKED = [("Q?", " Yes"), ("Q?", " No")]


@pytest.mark.parametrize(
    ("resps", "answer"),
    [
        ([[["-2.5", "False"]], [["-1.5", "True"]]], "No"),
        ([[[-0.5, True]], [[-1.5, False]]], "Yes"),
        ([[["-inf", "False"]], [["-90", "False"]]], "No"),
        ([[[-1.5, False]], [[-1.5, False]]], ""),
    ],
)
def test_the_likeliest_option_is_the_answer(resps, answer, tmp_path):
    (own,) = read_outputs(lines(tmp_path / "s", [sample(resps, arguments=ASKED)]))
    assert (own.answer, own.prompt, own.prompt_id, own.text) == (answer, "Q?", "1/a", "")


def test_options_without_the_prompt_do_not_count(tmp_path):
    asked = [*ASKED, ("", " Yes"), ("", " No")]
    resps = [[["-3", "False"]], [["-2", "False"]], [["-1", "False"]], [["-9", "False"]]]
    (own,) = read_outputs(lines(tmp_path / "s", [sample(resps, arguments=asked)]))
    assert own.answer == "No"


@pytest.mark.parametrize(
    ("asked", "resps", "message"),
    [
        (ASKED, [[["1.5", "False"]], [["0.2", "True"]]], "holds 1.5 as"),
        ([("", "a text")], [[["-9", "False"]]], "multiple_choice"),
        ([("A", " is it"), ("B", " is it")], [[["-9", "False"]], [["-8", "True"]]], "generate"),
        (ASKED, [[["-9", "False"]]], "multiple_choice"),
        (ASKED, [[["nan", "False"]], [["-8", "True"]]], "no number"),
        (ASKED, [[[]], [["-8", "True"]]], "no number"),
        (ASKED, [[["-1_5", "False"]], [["-8", "True"]]], "no number"),
    ],
)
def test_log_likelihoods_that_tell_no_option_are_refused(asked, resps, message, tmp_path):
    with pytest.raises(UserError, match=message):
        read_outputs(lines(tmp_path / "s", [sample(resps, arguments=asked)]))


@pytest.mark.parametrize("arguments", [5, "text", [5], [[]], {"a": 5}, {"a": {}}, None])
def test_strange_arguments_tell_no_prompt(arguments, tmp_path):
    record = sample([["Yes"]]) | {"arguments": arguments}
    (own,) = read_outputs(lines(tmp_path / "s", [record]))
    assert (own.text, own.prompt) == ("Yes", None)
