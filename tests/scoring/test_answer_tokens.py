import dataclasses

import pytest

from interp.errors import UserError
from interp.prompts.prompt import AnswerOption
from interp.prompts.tokens import tokenize
from interp.scoring.answer_tokens import AnswerTokenizer
from tests.support.prompts import some_prompts
from tests.support.tiny import make_tiny
from tests.support.tokenizers import KINDS, byte_level, sentencepiece_style


def answers_of(model, **changes):
    prompt = dataclasses.replace(some_prompts(2)[0], **changes)
    (tokenized,) = tokenize(model, [prompt])
    found = AnswerTokenizer(model)(tokenized)
    pieces = model.tokenizer.convert_ids_to_tokens
    return pieces(list(found.positive)), pieces(list(found.negative))


@pytest.mark.parametrize("kind", KINDS)
def test_forms_count_by_the_first_token_after_the_prompt(kind):
    model = make_tiny("llama", KINDS[kind]())
    options = {
        "positive": AnswerOption("Yes", ("Yes", "YES", "yes")),
        "negative": AnswerOption("No", ("No", "NO", "no")),
    }
    positive, negative = answers_of(model, **options)
    assert "Yes".startswith(positive[0].strip("Ġ▁"))
    assert "No".startswith(negative[0].strip("Ġ▁"))
    assert not set(positive) & set(negative)


def test_without_a_chat_template_the_answer_follows_a_space():
    model = make_tiny("llama", byte_level(None))
    options = {"positive": AnswerOption("Yes", ("Yes",)), "negative": AnswerOption("No", ("No",))}
    assert answers_of(model, **options) == (["ĠYes"], ["ĠNo"])
    chat = make_tiny("llama", byte_level())
    assert answers_of(chat, **options) == (["Yes"], ["No"])


def test_forms_that_share_a_first_token_are_counted_once():
    model = make_tiny("llama", byte_level())
    options = {
        "positive": AnswerOption("Yes", ("Yes", "Yes!", "Yes, it does")),
        "negative": AnswerOption("No", ("No",)),
    }
    positive, _ = answers_of(model, **options)
    assert positive == ["Yes"]


def test_a_form_that_merges_with_the_prompt_is_taken_alone():
    # A template that ends in a letter lets SentencePiece-style pieces run on into the answer.
    template = "{% for m in messages %}{{ m['content'] }} Y{% endfor %}"
    model = make_tiny("llama", sentencepiece_style(template))
    options = {"positive": AnswerOption("es", ("es",)), "negative": AnswerOption("No", ("No",))}
    positive, _ = answers_of(model, **options)
    alone = model.tokenizer("es", add_special_tokens=False)["input_ids"][:1]
    assert positive == model.tokenizer.convert_ids_to_tokens(alone)


@pytest.mark.parametrize("form", ["", "  "])
def test_an_answer_that_encodes_to_nothing_is_refused(form):
    model = make_tiny("llama", byte_level())
    with pytest.raises(UserError, match="encodes to nothing"):
        answers_of(model, positive=AnswerOption("Empty", (form,)))


def test_answers_that_begin_alike_are_refused():
    model = make_tiny("llama", byte_level())
    options = {
        "positive": AnswerOption("Yes", ("Yes",)),
        "negative": AnswerOption("Yes but", ("Yes but no",)),
    }
    with pytest.raises(UserError, match="both begin with the token 'Yes'"):
        answers_of(model, **options)
