import copy
import dataclasses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import normalizers, processors
from transformers import AutoTokenizer

from interp.errors import UserError
from interp.models.loading import ChatFormat
from interp.prompts.answers import AnswerOption, Choice
from interp.reading.tokens import ChatText, tokenize
from interp.scoring.answer_tokens import AnswerTokenizer
from tests.support.answers import NO
from tests.support.prompts import some_prompts
from tests.support.tiny import make_tiny
from tests.support.tokenizers import KINDS, byte_level, llama_style


def answers_of(model, positive, negative=NO, *, text=None, reader=None):
    choice = Choice.between(positive, negative, gold=True)
    prompt = dataclasses.replace(some_prompts(2)[0], answer=choice)
    if text is not None:
        prompt = dataclasses.replace(prompt, text=text, segments={"all": (0, len(text))}, roles={})
    (tokenized,) = tokenize(model, [prompt])
    found = (reader or AnswerTokenizer(model))(tokenized)
    pieces = model.tokenizer.convert_ids_to_tokens
    return tuple(pieces(list(tokens)) for tokens in found.of.values())


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


PLAIN = {
    "byte-level": lambda: byte_level(None),
    "first": lambda: llama_style(None, legacy=False),
    "legacy": lambda: llama_style(None, legacy=True),
}
ONE = {"positive": AnswerOption("Yes", ("Yes",)), "negative": AnswerOption("No", ("No",))}
YES_NO = {
    "positive": AnswerOption("Yes", ("Yes", "YES", "yes")),
    "negative": AnswerOption("No", ("No", "NO", "no")),
}
SET_OFF = ["Answer:", "Yes or no?", "It is", 'Is it "so"', "(so)", "the dogs'", "**Answer:**"]
ATTACHED = ["Answer:\n", "Answer:\n\n", "Answer: ", "Answer:  ", "Answer:\t", "It is (", 'It is "']
ATTACHED += ['{"q":"5" wide","answer":"']
ATTACHED += ["It is [", "It is '", 'It is ("', "It is “", "It is «", "Answer: **", '{"answer":"']


@pytest.mark.parametrize("tokenizer", PLAIN)
@pytest.mark.parametrize("text", SET_OFF + ATTACHED)
def test_a_plain_answer_is_written_as_ordinary_text_goes_on(tokenizer, text):
    model = make_tiny("llama", PLAIN[tokenizer]())
    (positive,), (negative,) = answers_of(model, **ONE, text=text)
    if text in SET_OFF:
        space = "Ġ" if tokenizer == "byte-level" else "▁"
        assert (positive, negative) == (f"{space}Yes", f"{space}No")
    else:  # the vocabulary of the other two has no piece for a whole "Yes" within a word
        assert "Yes".startswith(positive)
        assert "No".startswith(negative)


def test_scripts_without_spaces_set_no_answer_off():
    model = make_tiny("llama", byte_level(None))
    for text in ("答案：", "他说：“", "「はい」", "这是"):
        assert answers_of(model, **ONE, text=text)[0] == ["Yes"]
    assert answers_of(model, **ONE, text="정답은")[0] == ["ĠYes"]


def test_a_plain_answer_right_after_a_marker_is_not_set_off():
    tokenizer = copy.deepcopy(byte_level(None))
    tokenizer.add_tokens(["<bot>", "aspirin"])
    model = make_tiny("llama", tokenizer)
    assert answers_of(model, **ONE, text="Is it so? <bot>")[0] == ["Yes"]
    assert answers_of(model, **ONE, text="Is it aspirin")[0] == ["ĠYes"]


def test_a_blank_of_the_forms_own_is_not_written_twice():
    model = make_tiny("llama", byte_level(None))
    spaced = {name: AnswerOption(one.name, (f" {one.name}",)) for name, one in ONE.items()}
    for text in ("Answer:", "Answer: ", "Answer:\n"):
        assert answers_of(model, **spaced, text=text) == answers_of(model, **ONE, text=text)


@pytest.mark.parametrize("text", SET_OFF + ATTACHED)
def test_white_space_alone_never_counts_after_any_end(text):
    model = make_tiny("llama", llama_style(None, legacy=False))
    snow = AnswerOption("snow", ("☃ snow",))  # "▁" and a token that the vocabulary lacks
    if text in ATTACHED:
        assert "▁" not in answers_of(model, positive=snow, text=text)[0]
    else:
        with pytest.raises(UserError, match=r"'(snow|odd)'.*tiny llama.*white-space token"):
            answers_of(model, positive=snow, text=text)


@pytest.mark.parametrize("text", SET_OFF + ATTACHED)
def test_answers_that_begin_alike_are_refused_after_any_end(text):
    model = make_tiny("llama", byte_level(None))
    alike = {"positive": ONE["positive"], "negative": AnswerOption("Yes but", ("Yes but no",))}
    with pytest.raises(UserError, match=r"'Yes'.*'Yes but'.*' ?Yes'.*tiny llama"):
        answers_of(model, **alike, text=text)


def test_line_ends_that_a_tokenizer_reads_as_blanks_belong_to_the_answer():
    """Without a token of its own, what ends the prompt is part of the next token."""
    tokenizer = copy.deepcopy(llama_style(None, legacy=False))
    stripping = [normalizers.Replace("\n", " "), normalizers.Strip(left=False)]
    tokenizer.backend_tokenizer.normalizer = normalizers.Sequence(stripping)
    model = make_tiny("llama", tokenizer)
    assert answers_of(model, **ONE, text="Answer:\n") == (["▁Yes"], ["▁No"])


WORDS = st.text("YesNotrue,12é☃ .", min_size=1, max_size=8).filter(
    lambda word: word.strip() and not word[-1].isspace()
)
ENDS = st.sampled_from([*SET_OFF, *ATTACHED, "", "a", "é", " \n ", "[/INST]"])


@given(before=WORDS, end=ENDS, form=WORDS)
def test_prompt_and_answer_spell_one_text(before, end, form):
    """With a blank at most between them, and none where the prompt ends in one."""
    tokenizer = byte_level(None)
    model = make_tiny("llama", tokenizer)
    text = before + end
    reader = AnswerTokenizer(model)
    chat = ChatText(text, 0, templated=False)
    (opening,) = reader.openings(chat)
    answer = reader.after(chat, opening, form)
    read = tokenizer(text)["input_ids"]
    assert tokenizer.decode([*read, *answer]) == text + opening + form.lstrip()
    assert opening in ("", " ")
    assert not (text[-1].isspace() and opening)


TAIL = " so that nobody who reads the end of this question can see how it began. "
CLOSED = st.sampled_from(["*Answer:*", '"Answer:"', "`Answer:`", '"Answer":"', "It is ("])
LINES = st.builds(lambda one, other: one + TAIL + other, st.text('"*`a', max_size=2), CLOSED)


@pytest.mark.slow
@given(st.lists(LINES, min_size=3, max_size=6, unique=True), st.randoms())
def test_no_other_prompt_changes_the_tokens_of_an_answer(texts, random):
    model = make_tiny("llama", byte_level(None))
    alone = {text: answers_of(model, **YES_NO, text=text) for text in texts}
    shared, order = AnswerTokenizer(model), list(alone)
    random.shuffle(order)
    for text in order:
        assert answers_of(model, **YES_NO, text=text, reader=shared) == alone[text]


def test_a_mark_far_before_the_end_decides_where_an_answer_begins():
    model = make_tiny("llama", byte_level(None))
    reader = AnswerTokenizer(model)
    for mark, first in (("", "ĠYes"), ("**", "Yes")):
        text = f"{mark}Note{TAIL}**Answer:**"
        assert answers_of(model, **ONE, text=text, reader=reader)[0] == [first]


@given(st.text("ab 12.é☃\n<s>", min_size=100, max_size=200), ENDS)
def test_the_end_of_a_prompt_tells_the_tokens_after_it(before, end):
    """The same tokens as after the whole prompt, in tokenizers of both kinds."""
    for tokenizer in (byte_level(None), llama_style(None, legacy=False)):
        model = make_tiny("llama", tokenizer)
        reader, chat = AnswerTokenizer(model), ChatText(before + end, 0, templated=False)
        (found,) = answers_of(model, **ONE, text=chat.text, reader=reader)[:1]
        pieces = [way[0] for way in reader.written(chat, "Yes")]
        assert found == tokenizer.convert_ids_to_tokens(pieces)


def test_forms_that_share_a_first_token_are_counted_once():
    model = make_tiny("llama", byte_level())
    options = {
        "positive": AnswerOption("Yes", ("Yes", "Yes!", "Yes, it does")),
        "negative": AnswerOption("No", ("No",)),
    }
    positive, _ = answers_of(model, **options)
    assert positive == ["Yes"]


def test_a_form_that_merges_with_the_prompt_is_taken_alone():
    # A template that ends in a letter lets pieces run on into the answer.
    template = "{% for m in messages %}{{ m['content'] }} Y{% endfor %}"
    model = make_tiny("llama", byte_level(template))
    options = {"positive": AnswerOption("es", ("es",)), "negative": AnswerOption("No", ("No",))}
    positive, _ = answers_of(model, **options)
    alone = model.tokenizer("es", add_special_tokens=False)["input_ids"][:1]
    assert positive == model.tokenizer.convert_ids_to_tokens(alone)


def test_an_answer_that_encodes_to_nothing_is_refused():
    model = make_tiny("llama", byte_level())
    with pytest.raises(UserError, match=r"'Empty'.*tiny llama.*'  '"):
        answers_of(model, positive=AnswerOption("Empty", ("  ",)))


# How the published models write a conversation, in short.
INST = "[INST]", "[/INST]"


def loop(user, assistant):
    branches = f"{{% if m['role'] == 'user' %}}{user}{{% else %}}{assistant}{{% endif %}}"
    return f"{{{{ bos_token }}}}{{% for m in messages %}}{branches}{{% endfor %}}"


def turns(turn, generation):
    return (
        f"{{% for m in messages %}}{turn}{{% endfor %}}"
        f"{{% if add_generation_prompt %}}{generation}{{% endif %}}"
    )


SAID, TRIMMED = "{{ m['content'] + eos_token }}", "{{ ' ' + m['content'] | trim + eos_token }}"
WITH_SPACE = {
    "llama-2": (loop("[INST] {{ m['content'] | trim }} [/INST]", TRIMMED), ()),
    "mistral-v1": (loop("[INST] {{ m['content'] }} [/INST]", SAID), ()),
    "mistral-v3": (loop("[INST] {{ m['content'] }}[/INST]", TRIMMED), INST),
    "vicuna": (loop("USER: {{ m['content'] }} ASSISTANT:", TRIMMED), ()),
}
HEADER = "<u>{{ m['role'] }}</u>\n\n{{ m['content'] | trim }}<a>"
CHATML = "<u>{{ m['role'] }}\n{{ m['content'] }}</u>\n"
THOUGHT = "<a>\n<think>\n\n</think>\n\n{{ m['content'] }}</u>"
WITHOUT_SPACE = {
    "tekken": (loop("[INST]{{ m['content'] }}[/INST]", SAID), INST),
    "llama-3": (turns(HEADER, "<u>assistant</u>\n\n"), ()),
    "gemma": (turns(CHATML, "<u>model\n"), ()),
    "phi-3": (turns("<u>\n{{ m['content'] }}</u>\n", "<a>\n"), ()),
    "qwen": (turns(CHATML, "<u>assistant\n"), ()),
    "thinking": (
        loop("<u>{{ m['content'] }}</u>\n", THOUGHT)
        + "{% if add_generation_prompt %}<a>\n{% endif %}",
        (),
    ),
}
LAYOUTS = pytest.mark.parametrize("legacy", [False, True], ids=["first", "legacy"])


def tiny_with(template, markers, *, legacy):
    return make_tiny("llama", llama_style(template, legacy=legacy, markers=markers))


@LAYOUTS
@pytest.mark.parametrize("family", WITH_SPACE)
def test_an_answer_behind_a_space_counts(family, legacy):
    positive, negative = answers_of(tiny_with(*WITH_SPACE[family], legacy=legacy), **YES_NO)
    assert (positive[0], negative[0]) == ("▁Yes", "▁No")
    assert {"▁YES", "▁yes"} <= set(positive)
    assert "▁" not in positive + negative


def plain_first_token(model, form):
    """The first token of a form that is written right behind the prompt."""
    (tokenized,) = tokenize(model, [some_prompts(2)[0]])
    text = tokenized.chat.text
    ids = model.tokenizer(text + form, add_special_tokens=False)["input_ids"]
    return model.tokenizer.convert_ids_to_tokens(ids)[len(tokenized)]


@pytest.mark.parametrize("family", WITHOUT_SPACE)
def test_where_the_template_writes_no_space_nothing_is_added(family):
    model = tiny_with(*WITHOUT_SPACE[family], legacy=False)
    positive, negative = answers_of(model, **YES_NO)
    plain = [plain_first_token(model, form) for form in ("Yes", "YES", "yes", "No", "NO", "no")]
    assert positive + negative == list(dict.fromkeys(plain))
    assert not any(token.startswith("▁") for token in positive + negative)


def test_answers_that_begin_alike_in_one_way_of_writing_them_are_refused():
    model = tiny_with(*WITH_SPACE["mistral-v3"], legacy=False)
    options = {
        "positive": AnswerOption("Yes", ("Yes",)),
        "negative": AnswerOption("other", (" Yes but", "No")),
    }
    with pytest.raises(UserError, match=r"'Yes'.*'other'.*' Yes'.*tiny llama"):
        answers_of(model, **options)


def test_an_answer_that_begins_with_white_space_alone_is_refused():
    model = tiny_with(*WITH_SPACE["mistral-v3"], legacy=True)
    with pytest.raises(UserError, match=r"'(snow|odd)'.*tiny llama.*white-space token"):
        answers_of(model, positive=AnswerOption("odd", ("☃",)))


REAL = Path(__file__).parents[2].parent / "shared" / "data" / "tokenizers"


@pytest.mark.skipif(not REAL.is_dir(), reason="the real tokenizers are not here")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mistral-v3-nonlegacy", ["▁Yes", "Yes", "▁Y", "Y", "▁yes", "yes"]),
        ("mistral-v3-legacy", ["▁Yes", "▁Y", "▁yes"]),
        ("gpt2", ["ĠYes", "ĠYES", "Ġyes"]),
    ],
)
def test_real_tokenizers(name, expected):
    model = make_tiny("llama", AutoTokenizer.from_pretrained(REAL / name))
    assert answers_of(model, **YES_NO)[0] == expected


@pytest.mark.skipif(not REAL.is_dir(), reason="the real tokenizers are not here")
@pytest.mark.parametrize("name", ["mistral-v3-nonlegacy", "mistral-v3-legacy", "gpt2"])
def test_real_tokenizers_go_on_as_ordinary_text(name):
    model = make_tiny("llama", AutoTokenizer.from_pretrained(REAL / name))
    model = dataclasses.replace(model, chat=ChatFormat(template=False))
    space = "Ġ" if name == "gpt2" else "▁"
    for text in SET_OFF + ATTACHED:
        spelled = f"{space}Yes" if text in SET_OFF else "Yes"
        assert answers_of(model, **ONE, text=text)[0] == [spelled], text


def test_an_end_that_the_tokenizer_adds_is_not_read():
    ending = copy.deepcopy(byte_level(None))
    model = make_tiny("llama", ending)
    prompt = some_prompts(1)[0]
    (before,) = tokenize(model, [prompt])
    ending.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    (tokenized,) = tokenize(model, [prompt])
    assert tokenized.token_ids == (1, *before.token_ids)
    assert answers_of(model, **YES_NO)[0] == ["ĠYes", "ĠYES", "Ġyes"]
