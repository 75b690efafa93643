"""Instructions, demonstrations and beginnings of answers around prompts."""

from dataclasses import replace

import pytest

import interp
from interp.errors import UserError
from interp.prompts.answers import Completion, FreeText, Label, Unanswered
from interp.prompts.own.pairs import EXAMPLE
from interp.prompts.prompt import Messages
from interp.prompts.prompt_set import PromptSet
from interp.prompts.source import PromptSource
from tests.support.prompts import some_prompts


@pytest.fixture(scope="module")
def prompts():
    return interp.read_pairs(EXAMPLE)


def test_an_instruction_is_the_first_line_and_a_segment_and_spans_move_with_the_text():
    own = some_prompts(1)[0]
    (first, _) = interp.with_messages(some_prompts(1), instruction="Read:\ncarefully")
    assert first.text == f"Read:\ncarefully\n{own.text}"
    assert list(first.segments) == ["instruction", *own.segments]
    assert first.segment_text("instruction") == "Read:\ncarefully"
    for spans, moved in ((own.segments, first.segments), (own.roles, first.roles)):
        for name, span in spans.items():
            assert first.text[slice(*moved[name])] == own.text[slice(*span)]


@pytest.mark.parametrize(
    ("prefix", "answer"), [(None, "Yes"), ("Answer:", "Answer: Yes"), ('{"is":"', '{"is":"Yes')]
)
def test_a_demonstration_is_written_like_the_prompt(prompts, prefix, answer):
    around = interp.with_messages(
        prompts, shots=3, instruction="Read.", answer_prefix=prefix, shots_seed=2
    )
    by_id = {prompt.id: prompt for prompt in around}
    for prompt in around:
        assert prompt.messages.answer_prefix == (prefix or "")
        for one in prompt.messages.demonstrations:
            assert one.question == by_id[one.source].text
            assert one.answer.replace("No", "Yes") == answer


@pytest.mark.parametrize(
    ("end", "prefix"),
    [
        ("\nAnswer:", "Answer:"),
        (" Answer : \n", "answer:"),
        ("\nThe answer\tis", "The answer is"),
        ("\nAnswer:", "Answer: The reply is"),
        ("\nQuestion: so? Answer:", "Answer:"),
    ],
)
def test_a_prefix_that_the_text_ends_in_is_refused(prompts, end, prefix):
    own = [replace(prompt, text=f"{prompt.text}{end}") for prompt in prompts]
    with pytest.raises(UserError, match=r"already ends in .*twice"):
        interp.with_messages(own, answer_prefix=prefix)
    with pytest.raises(UserError, match="twice"):
        replace(own[0], messages=Messages(answer_prefix=prefix))


@pytest.mark.parametrize(
    ("end", "prefix"),
    [("\nAnswer:", "So:"), ("", "Answer:"), ("\nMy answer:", "Answer in a word:")],
)
def test_other_prefixes_follow_the_text(prompts, end, prefix):
    own = [replace(prompt, text=f"{prompt.text}{end}") for prompt in prompts]
    assert interp.with_messages(own, answer_prefix=prefix)[0].messages.answer_prefix == prefix


@pytest.mark.parametrize("system", ["logical-forms", "logical-forms-strict"])
def test_a_prefix_is_refused_where_a_system_writes_it(system):
    with pytest.raises(UserError, match=r"Answer:.*twice"):
        PromptSource(system=system, limit=1, answer_prefix="Answer:").load()


def test_only_what_is_asked_for_changes_the_identity(prompts):
    texts = {"instruction": "Read.", "system_prompt": "Be brief.", "answer_prefix": "So:"}
    asked = [{}, {"shots": 1}, {"shots": 1, "shots_seed": 1}, *({own: texts[own]} for own in texts)]
    hashes = [interp.with_messages(prompts, **one).content_hash() for one in asked]
    assert hashes[0] == prompts.content_hash() and len({*hashes}) == len(asked)
    assert list(interp.with_messages(prompts)) == list(prompts)
    assert PromptSource(limit=2).load().description.keys() == {"data", "pairs", "spread_seed"}


def test_the_record_names_what_was_drawn(prompts):
    around = interp.with_messages(prompts, shots=2, shots_seed=3, answer_prefix="So:")
    about = {"shots": "2", "shots_seed": "3", "answer_prefix": "So:"}
    assert around.description == prompts.description | about
    record = around[0].messages.record()
    assert record["answer_prefix"] == "So:"
    ids = {prompt.id for prompt in prompts}
    assert all(one["prompt_id"] in ids for one in record["demonstrations"])
    assert "messages" in around.to_frame()
    assert "messages" not in prompts.to_frame()


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"shots": 1}, r"'1/follows'.*demonstrations"),
        ({"system_prompt": "Be brief."}, r"'1/follows'.*system prompt, 'You reason\.'"),
        ({"answer_prefix": "So:"}, r"'1/follows'.*answer prefix, 'Then'"),
        ({"instruction": "Read."}, r"'1/follows'.*instruction"),
    ],
)
def test_what_a_prompt_has_is_not_replaced(asked, problem):
    table = EXAMPLE.assign(
        instruction="Think.",
        system_prompt="You reason.",
        shot1="Is it?",
        shot1_answer="No",
        answer_prefix="Then",
    )
    with pytest.raises(UserError, match=problem):
        interp.with_messages(interp.read_pairs(table), **asked)


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"instruction": " "}, r"instruction.*' '"),
        ({"system_prompt": ""}, r"system_prompt.*''"),
        ({"answer_prefix": "So: "}, r"'So: '.*white space"),
        ({"answer_prefix": "So\u200b"}, "invisible character U\\+200B"),
    ],
)
def test_texts_that_would_be_read_wrongly_are_refused(prompts, asked, problem):
    with pytest.raises(UserError, match=problem):
        interp.with_messages(prompts, **asked)


def marked(text):
    return text.removeprefix("Answer: ") if text.startswith("Answer: ") else Unanswered.UNPARSED


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        (FreeText(("12", "twelve")), "12"),
        (Completion(("Sweden", "Kingdom of Sweden")), "Sweden"),
        (FreeText(("12",), marked), None),
        (Label(("yes", "no"), "yes"), None),
    ],
)
def test_answers_of_other_kinds_are_written_if_they_would_be_judged_right(prompts, answer, shown):
    asked = PromptSet.of([replace(prompt, answer=answer) for prompt in prompts])
    if shown is None:
        with pytest.raises(UserError, match=r"'3/follows', '(12|yes)'.*demonstration"):
            interp.with_messages(asked, shots=1)
    else:
        first = interp.with_messages(asked, shots=1)[0]
        assert first.messages.demonstrations[0].answer == shown


def test_options_put_around_what_the_call_does(tmp_path):
    file = tmp_path / "pairs.csv"
    EXAMPLE.to_csv(file, index=False)
    asked = {"shots": 2, "shots_seed": 1, "instruction": "Read.\\nSay.", "answer_prefix": "So:"}
    source = PromptSource(data=str(file), **asked)
    called = asked | {"instruction": "Read.\nSay."}
    assert list(source.load()) == list(interp.with_messages(interp.read_pairs(file), **called))
    with pytest.raises(UserError, match=r"seed.*--shots"):
        PromptSource(shots_seed=1)
    for wrong in ({"shots": 65}, {"instruction": " "}, {"answer_prefix": "\x00"}):
        with pytest.raises(UserError):
            PromptSource(**wrong)
