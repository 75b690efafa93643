import json

import pytest

from interp.errors import UserError
from interp.models import tokenizer_limits
from interp.models.organisms import DEFAULT, organism_folder
from interp.models.tokenizer_limits import check_limits


def replacing(pattern, content):
    return {"type": "Replace", "pattern": pattern, "content": content}


@pytest.fixture
def altered(tmp_path):
    """A folder with an organism's tokenizer in which some parts are replaced."""

    def written(**parts):
        content = json.loads((organism_folder(DEFAULT) / "tokenizer.json").read_text()) | parts
        (tmp_path / "tokenizer.json").write_text(json.dumps(content))
        return tmp_path

    return written


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"normalizer": {"type": "NFKC"}},
        {"normalizer": replacing({"String": " "}, "▁")},
        {"normalizer": {"type": "no such type"}},  # transformers says what is wrong
    ],
)
def test_ordinary_tokenizers_pass(altered, parts):
    check_limits(altered(**parts))


LONG = {
    "normalizer": replacing({"String": "z"}, "a" * 30_000),
    "decoder": replacing({"String": "e"}, "a" * 100_000),
    "post_processor": {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "A", "type_id": 0}}],
        "pair": [],
        "special_tokens": {"A": {"id": "A", "ids": [1] * 300_000, "tokens": ["a"] * 300_000}},
    },
}


@pytest.mark.parametrize("part", LONG)
def test_what_makes_too_much_of_a_text_is_refused(altered, part):
    with pytest.raises(UserError, match=r"tokenizer\.json.*\b32 tokens"):
        check_limits(altered(**{part: LONG[part]}))


def test_a_library_that_aborts_takes_only_the_trial_along(altered, monkeypatch):
    small = tokenizer_limits._TRIAL.replace(str(tokenizer_limits.BYTES), str(2**28))
    monkeypatch.setattr(tokenizer_limits, "_TRIAL", small)
    steps = [replacing({"Regex": "."}, "a" * 1000)] * 4
    with pytest.raises(UserError, match="memory"):
        check_limits(altered(normalizer={"type": "Sequence", "normalizers": steps}))
