"""The page of questions: what `interp --help` shows, and the command that answers a question."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Annotated, NamedTuple

from interp.cli.fields import OptionsCommand
from interp.cli.parser import program
from interp.errors import UserError
from interp.options import Flag

GROUPS: Mapping[str, Mapping[str, str]] = {
    "Ask": {
        "evaluate": "is the model right?",
        "effects": "which part of the prompt decides its answers?",
        "attribute": "to which part does an attribution method point?",
    },
    "Look inside": {
        "patch": "where inside does the difference between two prompts become the answer?",
        "lens": "which words does each layer make the model likely to say?",
        "probe": "does the model know the fact?",
    },
    "Trust": {
        "faithfulness": "which attribution method is right about this model?",
        "compare": "do two models differ on the same prompts?",
    },
    "Run and read": {
        "validate": "is my table of pairs in order?",
        "report": "where is the page about what I measured?",
    },
}
"""The ten commands to begin with, each with the question that it answers."""


class Question(NamedTuple):
    """A row of the table of questions; that of docs/agents.md has the same, and what to read."""

    asks: str
    call: str
    """What answers it, in Markdown."""
    words: str
    """Further words by which the question is found."""


QUESTIONS = (
    Question(
        "How often is the model right?",
        "`interp evaluate`",
        "accuracy correct score test good reply answer prompts",
    ),
    Question(
        "Can its probabilities tell the sides apart, whatever it answers?",
        "`interp evaluate`",
        "auroc calibrated constant bias",
    ),
    Question(
        "Which part of the prompt decides the answer?",
        "`interp effects`",
        "premise segment word use depend cause matter shapley important sentence influence",
    ),
    Question(
        "Does the model read its premises at all?",
        "`interp evaluate --without-segments`, `interp effects`",
        "ignore guess prompt without",
    ),
    Question(
        "To which part does an attribution method point?",
        "`interp attribute --methods ...`",
        "gradient attention heat map saliency token shade",
    ),
    Question(
        "Which attribution method is right about this model?",
        "`interp faithfulness`",
        "trust believe report faithful best gradient attention choose",
    ),
    Question(
        "Where inside the model does a difference between two prompts become the answer?",
        "`interp patch`",
        "layer head position carry city store locate activation causal site circuit",
    ),
    Question(
        "Through which connections?",
        "`interp edges`, then `interp circuits`",
        "circuit edge head mlp path component connect flow",
    ),
    Question(
        "Does the model know the facts?",
        "`interp probe familiarity`, `interp probe knowledge`",
        "knowledge fact known familiar memory",
    ),
    Question(
        "Is a fact that it fails on not known, not retrieved or not used?",
        "`interp run ledger`",
        "knowledge know use retrieve fail ledger facts",
    ),
    Question(
        "Which words does each layer make the model likely to say?",
        "`interp lens`",
        "logit jacobian read predict vocabulary layer think",
    ),
    Question(
        "Is the side of a pair to be read from the activations?",
        "`interp probe linear`",
        "decode linear classifier represent stream encode probe",
    ),
    Question(
        "Does a direction of the residual stream change the answer?",
        "`interp steer`",
        "steering vector add remove swap ablate intervene control",
    ),
    Question(
        "How does the model answer one prompt, and which part matters?",
        '`interp scan "PROMPT"`',
        "single example look quick text string",
    ),
    Question(
        "Does the answer come from the thought?",
        "`interp thoughts`",
        "chain reasoning think cot scratchpad mediation",
    ),
    Question(
        "What does the model write?",
        "`interp generate`",
        "text completion sample greedy generation output",
    ),
    Question(
        "Are the answers right that another tool stored?",
        "`interp evaluate --answers-from FILE`",
        "vllm inspect lm-eval file log judge completions",
    ),
    Question(
        "Which part decides for a model behind an API?",
        "`interp effects --server URL --context context_cite`",
        "server openai remote hosted closed",
    ),
    Question(
        "Do two models differ on the same prompts?",
        "`interp compare DIR`",
        "better than mcnemar run seed worse difference compare significant versus",
    ),
    Question(
        "Which difference could this sample show at all?",
        "`interp plan --pilot DIR`",
        "many pairs power need enough size detect number",
    ),
    Question(
        "Is my table of pairs in order?",
        "`interp validate FILE`",
        "csv column fault error check own data file format valid",
    ),
    Question(
        "Will this model run on this machine, and how long will it take?",
        "`interp doctor --model NAME`",
        "memory gpu time fit slow disk load estimate",
    ),
    Question(
        "Where is the page about a run?",
        "`interp report DIR`, then `interp view DIR`",
        "html open browser figure result plot show see",
    ),
    Question(
        "How can other tools use the prompts or the activations?",
        "`interp export`, `interp activations`",
        "lm-eval inspect croissant vector save dataset hidden state",
    ),
)

_COMMON = """a an and are at be can do does for from how i in is it its me model my of on or that
the this to what when where which who why with interp"""


def overview(names: Iterable[str]) -> str:
    """What `interp --help` shows, given the names of all commands."""
    lines = ["Which question do you have about a language model?"]
    for title, commands in GROUPS.items():
        lines += ["", f"{title}:", *(f"  {name:14}{asks}" for name, asks in commands.items())]
    first = {name for commands in GROUPS.values() for name in commands}
    others = ", ".join(name for name in names if name not in first)
    lines += [
        "",
        f"also: {others}",
        "",
        f'{program()} help "QUESTION": the command for a question in your own words',
        f"{program()} help all: every command; --version: the version",
        f"{program()} COMMAND --help: its first options and examples; --help-all: all options",
    ]
    return "\n".join(lines) + "\n"


def _stems(text: str) -> set[str]:
    """The beginnings of the words of a text that tell questions apart."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    return {word.rstrip("sy")[:5] for word in words if word not in _COMMON.split()}


def found(question: str) -> list[Question]:
    """The questions of the table that share words with one, the best first, at most three.

    A word counts the more, the fewer questions of the table have it.
    """
    stems = [_stems(f"{row.asks} {row.call} {row.words}") for row in QUESTIONS]
    often = Counter(stem for own in stems for stem in own)
    asked = _stems(question)
    scores = [sum(1 / often[stem] for stem in own & asked) for own in stems]
    order = sorted(range(len(QUESTIONS)), key=lambda place: -scores[place])
    return [QUESTIONS[place] for place in order[:3] if scores[place] > max(scores) / 2]


class HelpCommand(OptionsCommand):
    """Find the command that answers a question, list all commands, or explain one."""

    EXAMPLES = ('help "which layer carries the city?"', "help all", "help evaluate")

    words: Annotated[tuple[str, ...], Flag("QUESTION", positional=True)] = ()
    """a question in your own words, or the name of a command, or all"""

    def _execute(self) -> None:
        import sys

        from interp.cli import build, find_commands

        known = find_commands()
        if not self.words:
            sys.stdout.write(overview(known))
        elif self.words == ("all",):
            width = max(map(len, known)) + 2
            lines = (f"{name:{width}}{command.HELP}\n" for name, command in known.items())
            sys.stdout.write("".join(lines))
        elif self.words[0] in known and len(self.words) == 1:
            build([self.words[0], "--help"])[0].parse_args([self.words[0], "--help"])
        else:
            rows = found(" ".join(self.words))
            if not rows:
                raise UserError(
                    "no question of the table has these words; expected words such as layer, fact, "
                    f"premise, method or thought. {program()} help all lists every command"
                )
            for row in rows:
                sys.stdout.write(f"{row.asks}\n  {row.call.replace('`', '')}\n")
