"""The prompts on which members of the zoo are measured."""

from interp.prompts.answers import AnswerOption, Choice
from interp.prompts.prompt import Donor, Prompt, compose
from tests.zoo.build import tokenizer
from tests.zoo.passes import Ids

LENGTHS = {"long": 13, "short": 11}
"""The pairs and the numbers of tokens in their prompts; they differ, so that batches are padded."""

SEGMENTS = ("first", "second")
DIFFERENT = (2, 8)
"""The tokens in which the prompts of a pair differ, one in each segment."""

_WORDS = {
    ("long", "clean"): ("w30", "w31"),
    ("long", "corrupt"): ("w40", "w41"),
    ("short", "clean"): ("w32", "w33"),
    ("short", "corrupt"): ("w42", "w43"),
}


def prompts() -> list[Prompt]:
    """Two pairs of prompts; a prompt's only donor is the other of its pair."""
    options = AnswerOption("Yes", ("Yes",)), AnswerOption("No", ("No",))
    found = []
    for (pair, side), words in _WORDS.items():
        other = _WORDS[pair, _OTHER[side]]
        own, donated = ([f"{first} w3 w4", f"{last} w9"] for first, last in (words, other))
        rest = " ".join(f"w{number}" for number in range(10, LENGTHS[pair]))
        text, spans = compose(
            [
                (None, "w0 w1 "),
                (SEGMENTS[0], own[0]),
                (None, " w5 w6 w7 "),
                (SEGMENTS[1], own[1]),
                (None, f" {rest}"),
            ]
        )
        donor = Donor("other", "instance", dict(zip(SEGMENTS, donated, strict=True)))
        answer = Choice.between(*options, gold=side == "clean")
        found.append(Prompt(f"{pair}/{side}", text, spans, answer, pair, side, {}, donors=(donor,)))
    return found


_OTHER = {"clean": "corrupt", "corrupt": "clean"}


def other_of(prompt: str) -> str:
    """The id of the other prompt of a pair."""
    pair, side = prompt.split("/")
    return f"{pair}/{_OTHER[side]}"


def ids_of(prompt: Prompt) -> Ids:
    """The tokens of a prompt."""
    return tuple(tokenizer()(prompt.text)["input_ids"])


def options() -> tuple[int, int]:
    """The tokens of the answers, whose logits' difference is measured."""
    words = tokenizer().get_vocab()
    return words["Yes"], words["No"]


def text_of(ids: list[int]) -> list[str]:
    """The words of some tokens, without special ones."""
    text = tokenizer().decode(ids, skip_special_tokens=True)
    assert isinstance(text, str)
    return text.split()
