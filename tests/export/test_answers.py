import pytest

from interp.export.answers import (
    JudgedAnswer,
    accuracy,
    answered,
    judged,
    paired_accuracy,
    read_prompts,
)

FORMS = {"Yes": ["Yes", "yes"], "No": ["No", "None"], "True": ["True"], "Tue": ["Tue"]}
OPTIONS = [{"name": name, "forms": forms} for name, forms in FORMS.items()]


@pytest.mark.parametrize(
    ("token", "option"),
    [("Yes", "Yes"), (" yes", "Yes"), ("N", "No"), ("Maybe", ""), (" ", ""), ("", ""), ("T", "")],
)
def test_a_token_answers_with_the_one_option_whose_form_it_begins(token, option):
    assert answered(token, OPTIONS) == option


def test_accuracies_by_hand():
    rows = [
        JudgedAnswer("1", 3.0, True),
        JudgedAnswer("1", 3.0, True),
        JudgedAnswer("2", 1.0, True),
    ]
    rows.append(JudgedAnswer("2", 1.0, False))
    assert accuracy(rows) == 7 / 8
    assert paired_accuracy(rows) == 3 / 4
    assert paired_accuracy(reversed(rows)) == 3 / 4
    assert paired_accuracy([list(row) for row in rows]) == 3 / 4  # as JSON gives them back


def test_a_prompt_is_judged_by_its_gold_answer(tmp_path):
    file = tmp_path / "prompts.jsonl"
    file.write_text('{"pair_id": "1", "weight": 2.0, "gold": "No", "options": []}\n')
    (prompt,) = read_prompts(file)
    assert judged(" No", prompt | {"options": OPTIONS}) == JudgedAnswer("1", 2.0, True)
    assert judged(" Yes", prompt | {"options": OPTIONS}) == JudgedAnswer("1", 2.0, False)
