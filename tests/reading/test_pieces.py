"""Tokens are text in every place that shows them, whatever signs a tokenizer writes for spaces."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import BPE
from transformers import PreTrainedTokenizerFast

import interp
from interp.doctor import inputs
from interp.reading.pieces import token_texts
from interp.reading.tokens import tokenize
from interp_probes.api import probe_familiarity, probe_knowledge
from tests.support.facts import some_facts
from tests.support.prompts import some_prompts
from tests.support.tiny import make_tiny
from tests.support.tokenizers import byte_level, sentencepiece_style

PLAIN = "If Anne went to Oslo, then she was not in Norway."


def large(template=None):
    """Pieces with "▁" in a vocabulary that has Maltese letters too, as that of Gemma."""
    tokenizer = copy.deepcopy(sentencepiece_style(template))
    tokenizer.add_tokens(["Ġ", "Ċ"])
    return tokenizer


def of(*pieces: str) -> PreTrainedTokenizerFast:
    """A tokenizer with these pieces."""
    vocabulary = {piece: place for place, piece in enumerate(["<eos>", *pieces])}
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(BPE(vocabulary, [], unk_token="<eos>"))
    )


@pytest.mark.parametrize("tokenizer", [byte_level, sentencepiece_style, large])
def test_tokens_of_plain_text_join_to_the_text(tokenizer):
    own = tokenizer(None)
    shown = token_texts(own, own(PLAIN, add_special_tokens=False)["input_ids"])
    assert "".join(shown).strip() == PLAIN


@pytest.mark.parametrize(
    ("pieces", "among", "expected"),
    [
        (("If", "ĠZo", "Ã«", "Ċ"), "Ġ", ["If", " Zo", "ë", "\n"]),
        (("▁If", "▁Zo", "ë", "<0x0A>"), "▁", [" If", " Zo", "ë", "\n"]),
        # Gemma has both signs: letters of a language are no spaces.
        (("▁Ġo", "Ċ", "▁the", "Ã«"), "Ġ▁", [" Ġo", "Ċ", " the", "Ã«"]),
        (("ĉx", "Ċ"), "Ġ", ["\tx", "\n"]),
        (("Ġa", "Ã", "«"), "Ġ", [" a", "\\xc3", "\\xab"]),  # parts of a character
        (
            ("<|eot_id|>", "<｜begin▁of▁sentence｜>", "Ġa"),
            "Ġ",
            ["<|eot_id|>", "<｜begin▁of▁sentence｜>", " a"],
        ),
    ],
)
def test_pieces_are_shown_as_text(pieces, among, expected):
    tokenizer = of(*pieces, *(letter for letter in among if letter not in pieces))
    assert token_texts(tokenizer, tokenizer.convert_tokens_to_ids([*pieces])) == expected


@given(st.text(min_size=1))
def test_tokens_of_whole_characters_read_as_the_tokenizer_decodes_them(text):
    tokenizer = byte_level(None)
    ids = tokenizer(f"a {text}", add_special_tokens=False)["input_ids"]
    shown = "".join(token_texts(tokenizer, ids))
    if "\\x" not in shown:
        assert shown == tokenizer.decode(ids)


def test_a_line_break_alone_is_text_in_every_vocabulary():
    byte_level, plain = of("Ġ", "Ċ", "ĠYes"), of("\n", "▁Yes", "▁")
    assert token_texts(byte_level, [2, 3, 0, 9]) == ["\n", " Yes", "<eos>", None]
    assert token_texts(plain, [1, 2, 3, 9]) == ["\n", " Yes", " ", None]


def written(folder) -> str:
    """All that pages in the folder show, and their tables."""
    kept = [file for file in folder.rglob("*") if file.suffix in (".html", ".js", ".csv", ".svg")]
    assert len(kept) > 1
    return "".join(file.read_text(encoding="utf-8") for file in kept)


@pytest.mark.parametrize(
    ("tokenizer", "signs"), [(byte_level, "ĠĊ"), (sentencepiece_style, "▁"), (large, "▁")]
)
def test_no_page_and_no_terminal_shows_the_signs_of_a_tokenizer(tokenizer, signs, tmp_path, capsys):
    model = make_tiny("llama", tokenizer(None))
    # A vocabulary lacks the first tokens of the answers to other facts.
    prompts, facts = some_prompts(4), some_facts()[:2]
    results = {
        "attribute": interp.attribute(model, prompts, keep_tokens=True),
        "evaluate": interp.evaluate(model, prompts),
        "generate": interp.generate(model, prompts, max_new_tokens=4),
        "lens": interp.lens(model, prompts, methods=("logit",)),
        "patch": interp.patch(model, prompts, granularity="position", layers=(0,)),
        "familiarity": probe_familiarity(model, facts),
        "knowledge": probe_knowledge(model, facts),
    }
    said: list[str] = []
    for name, result in results.items():
        interp.write_page(result.report(), tmp_path / name / "report.html")
        said += [result.summary().to_string(), *(own.said for own in result.cautions)]
    scanned = interp.scan(model, "{It rains.} Is it wet?", ["Yes", "No"])
    interp.write_page(scanned, tmp_path / "scan" / "report.html")
    shown = {name: written(tmp_path / name) for name in (*results, "scan")}
    said += map(str, inputs(model, tokenize(model, prompts)))
    shown["terminal"] = "".join([*said, *capsys.readouterr()])
    assert not [name for name, text in shown.items() if set(signs) & set(text)]
    tokens = results["attribute"].tokens.groupby("prompt_id")["token"].agg("".join)
    for prompt in prompts:
        assert " ".join(prompt.text.split()) in " ".join(tokens[prompt.id].split())
