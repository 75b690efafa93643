"""Files of stored texts, grouped by model and matched to prompts."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from interp.console import counted, echo
from interp.errors import UserError, one_line, shortened
from interp.files import checksum
from interp.prompts.prompt import Prompt
from interp.stored.matching import NAMED, Matched, Matcher
from interp.stored.output import Output, with_cuts
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
    """The texts of each model in the files, in their order; notes say what does not fit."""
    read = [(source, read_outputs(source.file), checksum(source.file)) for source in files]
    known = {source.name or text.model for source, texts, _ in read for text in texts} - {None, ""}
    outputs: dict[str, list[Output]] = {}
    sources: dict[str, dict[str, str]] = {}
    for source, of_file, sha256 in read:
        for model, texts in _by_model(source, of_file, known).items():
            outputs.setdefault(model, []).extend(texts)
            sources.setdefault(model, {})[source.file.name] = sha256
        if len(outputs) > MOST_MODELS:
            raise UserError(
                f"{source.file} has texts of more than {MOST_MODELS:,} models; expected names of "
                "models in the field or column model, or NAME=FILE"
            )
    matcher = Matcher(prompts)
    matched = {model: matched_to(matcher, texts, f"{model}: ") for model, texts in outputs.items()}
    return [ModelTexts(model, sources[model], match) for model, match in matched.items()]


def _by_model(
    source: TextFile, outputs: Sequence[Output], known: AbstractSet[str | None]
) -> dict[str, list[Output]]:
    """The texts of a file by the name of their model.

    One without a name, such as a request that failed, belongs to the file's only model or, if all
    of its requests failed, to the only one of all files (`known`).
    """
    named = {output.model for output in outputs} - {None, ""}
    if source.name and len(named) > 1:
        raise UserError(
            f"{source.file} has texts of {', '.join(sorted(map(str, named)))}; expected texts of "
            f"one model, since you name it {source.name!r}; omit the name"
        )
    if not named and all(output.error for output in outputs):
        named = set(known)
    default = source.file.stem if not named else min(map(str, named)) if len(named) == 1 else ""
    by_model: dict[str, list[Output]] = {}
    for output in outputs:
        model = source.name or one_line(output.model or default, LONGEST_NAME)
        by_model.setdefault(model, []).append(output)
    if nameless := by_model.pop("", None):
        echo(
            f"{source.file.name}: {len(nameless):,} of {counted(len(outputs), 'text')} name no "
            f"model, though others do, and are left out, such as {nameless[0].where}"
        )
    return by_model


def matched_to(matcher: Matcher, outputs: Iterable[Output], about: str = "") -> Matched:
    """The texts by prompt; a note says what does not fit, and a UserError that nothing does."""
    matched = matcher.match(with_cuts(list(outputs)))
    problems = matched.problems()
    if not matched.outputs:
        ids = ", ".join(shortened(prompt.id, 60) for prompt in matcher.prompts[:NAMED])
        raise UserError(
            f"{about}none of the texts fits a prompt: {problems[0]}. The prompts have ids such as "
            f"{ids}; use the same system, data, limit and seed as for the texts, and the id as "
            "custom_id or prompt_id, or store the prompt's text"
        )
    if all(output.error for texts in matched.outputs.values() for output in texts):
        raise UserError(
            f"{about}all of {counted(len(matched.wrong['failed']), 'request')} failed, such as "
            f"{matched.wrong['failed'][0]}; send them again"
        )
    for line in problems:
        echo(f"{about}{line}")
    return matched
