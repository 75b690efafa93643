"""Files of stored texts, grouped by model and matched to prompts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from interp.console import echo
from interp.errors import UserError, one_line, shortened
from interp.files import checksum
from interp.prompts.prompt import Prompt
from interp.stored.matching import NAMED, Matched, Matcher
from interp.stored.output import Output
from interp.stored.read import read_outputs
from interp.stored.text_file import LONGEST_NAME, TextFile

MOST_MODELS = 1000
"""Largest number of models in files, each of which is matched to all prompts."""


@dataclass(frozen=True)
class ModelTexts:
    """The texts of one model, matched to prompts."""

    model: str
    files: Mapping[str, str]
    """The checksums of the files that hold them, by name."""
    matched: Matched

    @property
    def shown(self) -> str:
        """The names of the files."""
        return ", ".join(self.files)


def texts_by_model(files: Sequence[TextFile], prompts: Sequence[Prompt]) -> list[ModelTexts]:
    """The texts of each model in the files, in their order; notes say what does not fit.

    Raises:
        UserError: a file cannot be read, has texts of several models although it was named for one,
            or no text of a model fits the prompts.
    """
    outputs: dict[str, list[Output]] = {}
    sources: dict[str, dict[str, str]] = {}
    for own in files:
        sha256 = None
        for output in read_outputs(own.file):
            model = _model_of(output, own)
            outputs.setdefault(model, []).append(output)
            sha256 = sha256 or checksum(own.file)
            sources.setdefault(model, {})[own.file.name] = sha256
        if len(outputs) > MOST_MODELS:
            raise UserError(
                f"{own.file} has texts of more than {MOST_MODELS:,} models; expected names of "
                "models in the field or column model, or NAME=FILE"
            )
        named = {output.model for output in outputs.get(own.name, ())}
        if own.name and len(named) > 1:
            raise UserError(
                f"{own.file} has texts of {', '.join(sorted(map(str, named)))}; expected texts of "
                f"one model, since you name it {own.name!r}; omit the name"
            )
    matcher = Matcher(prompts)
    return [
        ModelTexts(model, sources[model], matched_to(matcher, own, f"{model}: "))
        for model, own in outputs.items()
    ]


def matched_to(matcher: Matcher, outputs: Iterable[Output], about: str = "") -> Matched:
    """The texts by prompt; a note says what does not fit.

    Raises:
        UserError: none fits.
    """
    outputs = list(outputs)
    matched = matcher.match(outputs)
    problems = matched.problems()
    if not matched.outputs:
        known = ", ".join(shortened(prompt.id, 60) for prompt in matcher.prompts[:NAMED])
        raise UserError(
            f"{about}none of the texts fits a prompt: {problems[0]}. The prompts have ids such as "
            f"{known}; use the same system, data, limit and seed as for the texts, and the id as "
            "custom_id or prompt_id, or store the prompt's text"
        )
    for line in problems:
        echo(f"{about}{line}")
    return matched


def _model_of(output: Output, source: TextFile) -> str:
    stated = one_line(output.model or "", LONGEST_NAME)
    return source.name or stated or source.file.stem
