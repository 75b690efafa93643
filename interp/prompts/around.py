"""What is written around prompts: an instruction, demonstrations, and the answer's beginning."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from interp.errors import UserError, described, shortened
from interp.prompts.answers import Choice, Label
from interp.prompts.plain_text import gap
from interp.prompts.prompt import ANSWER_PREFIX, INSTRUCTION, SYSTEM_PROMPT, Demonstration, Prompt
from interp.prompts.prompt_set import PromptSet
from interp.prompts.shots import Draw
from interp.prompts.systems import dependence_factor
from interp.prompts.thought import Span
from interp.texts import MOST_SHOTS


def with_messages(
    prompts: Sequence[Prompt],
    *,
    shots: int = 0,
    shots_seed: int = 0,
    system_prompt: str | None = None,
    instruction: str | None = None,
    answer_prefix: str | None = None,
    pool: Sequence[Prompt] | None = None,
    cluster: str | None = None,
) -> PromptSet:
    """The prompts with messages around them, which are segments of their own.

    Demonstrations are other prompts, each written as the prompt itself, with its correct answer
    (`interp.prompts.shots` says which are drawn). Both sides of a pair get the same ones.

    Args:
        prompts: the prompts, as from `interp.load_prompts` or `interp.read_pairs`.
        shots: number of demonstrations before each prompt: segments shot1, shot2 ...
        shots_seed: seed of their draw and order.
        system_prompt: the system message (segment system_prompt).
        instruction: a first line of each prompt and of each demonstration (segment instruction).
        answer_prefix: the beginning of the answer, after which it is read, and of the
            demonstrations' answers (segment answer_prefix).
        pool: the prompts from which demonstrations are drawn; by default, `prompts` and those that
            a limit left out, so that the draw does not depend on it.
        cluster: the factor that groups dependent prompts; by default, that of the prompts' system.

    Raises:
        UserError: there are too few clusters to draw from, a correct answer cannot be written, or a
            prompt already has messages of this kind.
    """
    prompt_set = PromptSet.of(prompts)
    if not isinstance(shots, int) or not 0 <= shots <= MOST_SHOTS:
        raise UserError(f"shots is {described(shots)}; expected a whole number to {MOST_SHOTS}")
    for name, text in (("instruction", instruction), ("system_prompt", system_prompt)):
        if text is not None and (not isinstance(text, str) or not text.strip()):
            raise UserError(f"{name} is {described(text)}; expected a text that is not empty")
    whole = replace(prompt_set, numbers=prompt_set.drawn_from or prompt_set.numbers)
    shown = whole if pool is None else PromptSet.of(pool)
    apart = cluster or dependence_factor(prompt_set.system)
    draw = Draw(shots, shots_seed, prompt_set, shown, apart) if shots else None
    around = _Around(prompt_set, system_prompt, instruction, answer_prefix, draw)
    about = {"shots": str(shots), "shots_seed": str(shots_seed)} if shots else {}
    for name in (SYSTEM_PROMPT, INSTRUCTION, ANSWER_PREFIX):
        if (text := getattr(around, name)) is not None:
            about[name] = text
    for number in prompt_set.numbers[:1]:
        around.built(number)  # report at once what cannot be written
    return replace(prompt_set, build=around.built, description={**prompt_set.description, **about})


@dataclass(frozen=True)
class _Around:
    prompts: PromptSet
    system_prompt: str | None
    instruction: str | None
    answer_prefix: str | None
    draw: Draw | None

    def built(self, number: int) -> Prompt:
        """A prompt with what is around it."""
        prompt = self.prompts.build(number)
        own = prompt.messages
        for name, text, had in (
            ("system prompt", self.system_prompt, own.system),
            ("answer prefix", self.answer_prefix, own.answer_prefix),
        ):
            if text is not None and had:
                raise UserError(
                    f"prompt {shortened(prompt.id, 60)!r} has its own {name}, "
                    f"{shortened(had, 60)!r}; omit the one for all prompts"
                )
        prefix = own.answer_prefix if self.answer_prefix is None else self.answer_prefix
        messages = replace(own, system=self.system_prompt or own.system, answer_prefix=prefix)
        if self.draw is not None:
            if own.demonstrations:
                raise UserError(
                    f"prompt {shortened(prompt.id, 60)!r} has demonstrations of its own; omit the "
                    "shots"
                )
            begun = prefix + gap(prefix)
            shown = (
                Demonstration(self._instructed(shot).text, begun + _correct(shot), shot.id)
                for shot in self.draw.of(prompt)
            )
            messages = replace(messages, demonstrations=tuple(shown))
        return replace(self._instructed(prompt), messages=messages)

    def _instructed(self, prompt: Prompt) -> Prompt:
        if self.instruction is None:
            return prompt
        if INSTRUCTION in prompt.segments or INSTRUCTION in prompt.roles:
            raise UserError(
                f"prompt {shortened(prompt.id, 60)!r} has an instruction of its own (a segment "
                f"{INSTRUCTION}); omit the one for all prompts"
            )
        instruction = {INSTRUCTION: (0, len(self.instruction))}
        shift = len(self.instruction) + 1
        return replace(
            prompt,
            text=f"{self.instruction}\n{prompt.text}",
            segments=instruction | _shifted(prompt.segments, shift),
            roles=_shifted(prompt.roles, shift),
        )


def _shifted(spans: Mapping[str, Span], shift: int) -> dict[str, Span]:
    return {name: (start + shift, end + shift) for name, (start, end) in spans.items()}


def _correct(prompt: Prompt) -> str:
    """The correct answer in the form in which a model is to write it."""
    answer = prompt.answer
    if isinstance(answer, Choice):
        return next(option.forms[0] for option in answer.options if option.name == answer.gold)
    if isinstance(answer, Label) or not answer.judge(answer.gold).correct:
        raise UserError(
            f"the correct answer to prompt {shortened(prompt.id, 60)!r}, "
            f"{shortened(answer.gold, 60)!r}, cannot be written as a demonstration, since a model "
            "that wrote it would not be judged right; omit the shots"
        )
    return answer.gold
