"""What is written around prompts: an instruction, demonstrations, and the answer's beginning."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from interp.errors import UserError, shortened
from interp.prompts.answers import Choice, Label
from interp.prompts.gap import gap
from interp.prompts.prompt import INSTRUCTION, Demonstration, Messages, Prompt
from interp.prompts.prompt_set import PromptSet
from interp.prompts.shots import Draw
from interp.prompts.thought import Span


@dataclass(frozen=True, slots=True)
class Around:
    """What is written around each prompt of a set."""

    shots: int = 0
    """Number of demonstrations."""
    shots_seed: int = 0
    """Seed of their draw and order."""
    instruction: str | None = None
    """First line of each prompt, also of each demonstration."""
    answer_prefix: str | None = None
    """Beginning of the answer, also of the answer of each demonstration."""

    def given(self) -> dict[str, str]:
        """The texts and numbers that were asked for, by name."""
        named = {"instruction": self.instruction, "answer_prefix": self.answer_prefix}
        found = {name: text for name, text in named.items() if text is not None}
        drawn = {"shots": str(self.shots), "shots_seed": str(self.shots_seed)}
        return (drawn if self.shots else {}) | found

    def put(self, prompts: PromptSet, pool: PromptSet, cluster: str | None = None) -> PromptSet:
        """The prompts with everything around them.

        Args:
            prompts: the prompts.
            pool: the prompts from which demonstrations are drawn, such as the whole set of which
                `prompts` is a part, so that a prompt's demonstrations do not depend on a limit.
            cluster: the factor that groups dependent prompts (`System.cluster`).

        Raises:
            UserError: there are too few clusters to draw from, or a prompt has an instruction,
                demonstrations or an answer prefix of its own.
        """
        if not self.given():
            return prompts
        drawn = Draw(self.shots, self.shots_seed, prompts, pool, cluster) if self.shots else None

        def built(number: int) -> Prompt:
            prompt = prompts.build(number)
            messages = self._begun(prompt)
            if drawn is not None:
                if messages.demonstrations:
                    raise UserError(
                        f"prompt {shortened(prompt.id, 60)!r} has demonstrations of its own; omit "
                        "the shots"
                    )
                others = drawn.of(prompt)
                shown = tuple(self._demonstration(one, messages.answer_prefix) for one in others)
                messages = replace(messages, demonstrations=shown)
            return replace(self._instructed(prompt), messages=messages)

        around = replace(prompts, build=built, description={**prompts.description, **self.given()})
        for number in prompts.numbers[:1]:
            built(number)  # report what cannot be written at once
        return around

    def _begun(self, prompt: Prompt) -> Messages:
        own = prompt.messages
        if self.answer_prefix is None:
            return own
        if own.answer_prefix:
            raise UserError(
                f"prompt {shortened(prompt.id, 60)!r} has its own answer prefix, "
                f"{shortened(own.answer_prefix, 60)!r}; omit the one for all prompts"
            )
        return replace(own, answer_prefix=self.answer_prefix)

    def _instructed(self, prompt: Prompt) -> Prompt:
        """The prompt with the instruction as its first line, a segment of its own."""
        if self.instruction is None:
            return prompt
        if INSTRUCTION in prompt.segments or INSTRUCTION in prompt.roles:
            raise UserError(
                f"prompt {shortened(prompt.id, 60)!r} has an instruction of its own (a segment "
                f"{INSTRUCTION}); omit the one for all prompts"
            )
        own = {INSTRUCTION: (0, len(self.instruction))}
        shift = len(self.instruction) + 1
        return replace(
            prompt,
            text=f"{self.instruction}\n{prompt.text}",
            segments=own | _shifted(prompt.segments, shift),
            roles=_shifted(prompt.roles, shift),
        )

    def _demonstration(self, other: Prompt, prefix: str) -> Demonstration:
        """A prompt with its correct answer, both written as for the prompt that is asked."""
        answer = prefix + gap(prefix) + _correct(other)
        return Demonstration(self._instructed(other).text, answer, other.id)


def _shifted(spans: Mapping[str, Span], shift: int) -> dict[str, Span]:
    return {name: (start + shift, end + shift) for name, (start, end) in spans.items()}


def _correct(prompt: Prompt) -> str:
    """The correct answer in the form in which a model is to write it."""
    answer = prompt.answer
    if isinstance(answer, Choice):
        return next(own.forms[0] for own in answer.options if own.name == answer.gold)
    if isinstance(answer, Label) or not answer.judge(answer.gold).correct:
        raise UserError(
            f"the correct answer to prompt {shortened(prompt.id, 60)!r}, "
            f"{shortened(answer.gold, 60)!r}, cannot be written as a demonstration, since a model "
            "that wrote it would not be judged right; omit the shots"
        )
    return answer.gold
