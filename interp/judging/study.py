"""The study of how well attribution agrees with a model's causal effects."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, JsonValue

from interp import texts
from interp.attribution.registry import ATTRIBUTION, find_method
from interp.errors import UserError, shortened
from interp.files import checksum
from interp.judging import EFFECTS, GIVEN, REINITIALIZED, SCORES
from interp.judging.given import Given
from interp.measurements.specs import Attribute, Effects, ReadsAnswers, Reinitialized
from interp.measuring.spec import Stage
from interp.options import FromText
from interp.prompts.prompt import DONORS
from interp.prompts.source import PromptSource
from interp.stored.text_file import TextFile, text_file
from interp.studies.study import Study
from interp.variants import WRITTEN, FromVariants

if TYPE_CHECKING:
    from interp.prompts.prompt_set import PromptSet


ALL = "all"

METHODS = (
    "input_gradient",
    "attention",
    "input_x_gradient",
    "frozen_norms",
    "gim",
    "integrated_gradients",
    "attention_rollout",
    "value_weighted_norm",
    "captum:occlusion",
    "leave_one_out:deletion",
    "leave_one_out:donor",
    "context_cite",
    "captum:kernel_shap",
    "captum:lime",
)
"""All methods for causal models, without duplicates, except `shapley`, which is the ground
truth."""

REINITIALIZED_PAIRS = 24
"""Largest number of pairs for the reinitialized model."""


def _labels(text: str) -> tuple[str, ...]:
    return METHODS if text == ALL else ATTRIBUTION.some(text)


class Faithfulness(ReadsAnswers, Study):
    """The study of how well each method's scores agree with the effects of segments."""

    name = "faithfulness"
    page = "interp.judging.page:report_of"
    default_limit = 48
    any_system = True
    derives = ("interp.judging.page:DISTANCES",)

    methods: Annotated[tuple[str, ...], FromVariants(_labels, WRITTEN, ATTRIBUTION)] = METHODS
    """attribution methods to judge, with options such as captum:lime:samples=256, or all"""
    segments: Annotated[
        Annotated[tuple[str, ...], Field(min_length=1)] | None, FromText(texts.names, "NAME")
    ] = None
    """the segments to judge, such as premise1,premise2; the others are unchanged (default: the two
    that the system compares, or otherwise every segment with donors)
    """
    scores: tuple[Annotated[TextFile, FromText(text_file, "NAME=FILE")], ...] = ()
    """also judge the scores of other tools in these files, with the columns prompt, score, and
    segment, token, or start and end (docs/faithfulness.md)"""
    reinitialized: bool = True
    """also judge scores of the model with random weights, which requires a second copy in memory"""

    def identity(self) -> dict[str, JsonValue]:
        """The options, with the checksums of files instead of their places."""
        options = {name: value for name, value in self.as_json().items() if name != "scores"}
        files: dict[str, JsonValue] = {
            name: checksum(file.file.resolve()) for name, file in self._files()
        }
        return {**options, "scores": files} if files else options

    def _files(self) -> list[tuple[str, TextFile]]:
        names = [file.name or file.file.stem for file in self.scores]
        for name, file in zip(names, self.scores, strict=True):
            if not file.file.is_file() or names.count(name) > 1:
                raise UserError(
                    f"the scores {name} are in {shortened(str(file.file))}; expected a file for "
                    "each name, and another name for each file"
                )
        return list(zip(names, self.scores, strict=True))

    def organisms_for(self, source: PromptSource) -> tuple[str, ...]:
        """The systems with organisms for this study: the source's, and its mixture with donors."""
        return source.system, f"{source.system}-mixed"

    def stages(self, source: PromptSource) -> Sequence[Stage]:
        """The stages, which measure effects and scores on the same prompts with the same donors.

        The target of scores is the margin of the model's own answer, as for the effects.
        """
        whole = source.whole()
        # Without clusters, pairs of a unit are dependent: take them from as many units as possible.
        apart = whole if whole.clusters else replace(whole, unit=(), clusters=whole.unit)
        drawn = source.drawn(apart, self.default_limit)
        drawn.check()
        prompts = self._donated(drawn)
        options: dict[str, Any] = {"target": "margin", "answers": self.answers}
        stages = [
            Stage(EFFECTS, prompts, Effects(answers=self.answers)),
            Stage(SCORES, prompts, Attribute(methods=self.methods, **options)),
        ]
        if self.scores:
            from interp.judging.read_scores import read_scores  # this imports torch

            rows = read_scores(dict(self._files()), prompts)
            stages.append(Stage(GIVEN, prompts, Given(files=self.identity()["scores"], rows=rows)))
        methods = tuple(name for name in self.methods if not find_method(name).reads_coalitions)
        if self.reinitialized and methods:
            few = self._donated(drawn.spread(min(REINITIALIZED_PAIRS, len(drawn)), source.seed))
            stages.append(Stage(REINITIALIZED, few, Reinitialized(methods=methods, **options)))
        return tuple(stages)

    def _donated(self, prompts: "PromptSet") -> "PromptSet":
        from interp.prompts.mixing import with_donors

        compared = None if prompts.ratio is None else tuple(sorted(prompts.ratio))
        return with_donors(prompts, count=DONORS, segments=self.segments or compared)
