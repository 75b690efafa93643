"""The system prompt that a template writes by itself, for templates in the styles of families."""

from dataclasses import replace

import pytest

from tests.support.tiny import make_tiny
from tests.support.tokenizers import byte_level

TURNS = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}<|assistant|>"
SYSTEM = "{% if messages[0].role != 'system' %}<|system|>You are Bo, a helper.<|end|>{% endif %}"
PREFACE = "Below is an instruction that describes a task."


def model(template):
    return make_tiny("llama", byte_level(template))


@pytest.mark.parametrize(
    ("template", "said"),
    [
        (SYSTEM + TURNS, "You are Bo, a helper."),
        (PREFACE + TURNS, PREFACE),
        (TURNS, ""),
        (TURNS.replace("<|{{ m.role }}|>", "GPT4 Correct {{ m.role }}: "), ""),
        ("<|begin_of_text|>" + TURNS.replace("<|{{ m.role }}|>", ""), ""),
        (None, ""),
    ],
)
def test_what_the_template_says_by_itself_is_found(template, said):
    own = model(template)
    assert own.own_system_prompt == said
    for asked in ("Answer briefly, please.", ""):
        assert replace(own, chat=replace(own.chat, system=asked)).own_system_prompt == ""
