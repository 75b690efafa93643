import json
from copy import deepcopy
from pathlib import Path

import pytest
from tokenizers import Regex, Tokenizer
from tokenizers.pre_tokenizers import ByteLevel, Sequence, Split
from transformers import AutoConfig, LlamaConfig, MistralConfig

from interp.models.tokenizer import load_tokenizer
from tests.support.tokenizers import byte_level

TEXT = 'IT\'S 12345 done.\n\nIf x="Yes"\n then  (a/b)\tQuoVadis ok'
REAL = Path(__file__).parents[2].parent / "shared" / "data" / "tokenizers"
REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = rf"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}|{REST}"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
BEFORE = r"[^\r\n\p{L}\p{N}]?"
MISTRAL = (
    rf"{BEFORE}{UPPER}*{LOWER}+|{BEFORE}{UPPER}+{LOWER}*|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""As transformers has it (`_patch_mistral_regex`)."""


def cut(expression):
    return Sequence(
        [Split(Regex(expression), "isolated"), ByteLevel(add_prefix_space=False, use_regex=False)]
    )


def save(folder, config, version="4.50.0"):
    """Settings as an older version saved them."""
    config.save_pretrained(folder)
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"transformers_version": version}))


@pytest.mark.parametrize(
    ("kind", "further", "expected"),
    [(MistralConfig, [], MISTRAL), (MistralConfig, ["10"], LLAMA3), (LlamaConfig, [], LLAMA3)],
    ids=["mistral", "numbers", "llama"],
)
def test_mistral_cuts_by_its_own_rule(kind, further, expected, tmp_path, capsys):
    tokenizer = deepcopy(byte_level())
    assert tokenizer.backend_tokenizer.token_to_id("10") is None
    tokenizer.add_tokens(further)
    tokenizer.backend_tokenizer.pre_tokenizer = cut(LLAMA3)
    tokenizer.save_pretrained(tmp_path)
    save(tmp_path, kind())
    loaded = load_tokenizer(tmp_path, kind()).backend_tokenizer
    found = loaded.pre_tokenizer.pre_tokenize_str(TEXT)
    assert found == cut(expected).pre_tokenize_str(TEXT)
    assert (found == cut(LLAMA3).pre_tokenize_str(TEXT)) == (expected == LLAMA3)
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(not REAL.exists(), reason="needs the stored tokenizers")
@pytest.mark.parametrize("name", ["mistral-v3-legacy", "mistral-v3-nonlegacy"])
def test_mistrals_older_tokenizers_are_not_cut_otherwise(name, tmp_path, capsys):
    for file in (REAL / name).iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = AutoConfig.from_pretrained(tmp_path)
    save(tmp_path, config)
    own = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    loaded = load_tokenizer(tmp_path, config)
    assert loaded(f"[INST] {TEXT}[/INST]")["input_ids"] == own.encode(f"[INST] {TEXT}[/INST]").ids
    assert capsys.readouterr().err == ""
