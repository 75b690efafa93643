"""The measurement for the spec `Thoughts`: how a model's thoughts affect its answers.

For each prompt x and each changed prompt x' (with one or all segments from a donor), thoughts t and
t' are drawn. The answer is read after x and t, x' and t, x and t', and x' and t'. It is also read
after parts of t and after replacements for t. All texts of several prompts are read together, so
shared beginnings are read once.

The value of a text is the logit of the correct answer to x minus the logit of the other answer.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

import numpy as np

from interp.console import counted
from interp.errors import UserError
from interp.measurements.answers.decoding import generate
from interp.measurements.answers.generation import GenerationMeasurement
from interp.measurements.effects.measure import Logits, check_choice, option_logits
from interp.measurements.specs import Generate, Thoughts
from interp.measurements.thoughts.texts import Draws, Studied, after, changed_prompts
from interp.measuring.core import Measurement, PromptRows
from interp.models.model import Model
from interp.prompts.prompt import Prompt
from interp.prompts.thought import Thought
from interp.reading.budget import TokenBudget, token_budget
from interp.reading.thoughts import cut_thought
from interp.reading.tokens import Batch, batches, tokenize
from interp.scoring.answer_tokens import AnswerTokenizer
from interp.scoring.answers import NOT_FINITE
from interp.scoring.shared_prefix import read_all
from interp.tables import TIE, Row


def thought_effects(
    model: Model, spec: Thoughts, *, batch_tokens: int | None = None
) -> Measurement:
    """Measure how thoughts affect answers, for a model that thinks."""
    budget = token_budget(model, batch_tokens)
    off = replace(model.chat, thinking="off", end_of_thought=None)
    direct = replace(model, chat=off, thoughts={})
    read, read_direct = _Reader(model, spec, budget), _Reader(direct, spec, budget)

    def measure_batch(batch: Batch) -> list[PromptRows]:
        prompts = [tokenized.prompt for tokenized in batch.prompts]
        for prompt in prompts:
            check_choice(prompt)
        with model.measuring():
            studied = _Writer(model, spec, budget).studied(prompts)
            plain = [replace(prompt, segments={}, roles={}) for prompt in prompts]
            answers = read_direct([[prompt] for prompt in plain])
            readings = read([list(study.texts(model)) for study in studied])
            rows = [
                _rows(model, study, logits, *at_once.values())
                for study, logits, at_once in zip(studied, readings, answers, strict=True)
            ]
        for prompt, tables in zip(plain, rows, strict=True):
            whole = read_direct.reads_whole(prompt)
            for row in tables["thought_answers"]:
                row["whole"] = whole
        return rows

    def error_rows(prompt: Prompt, error: str) -> PromptRows:
        row: Row = {"model": model.name, "prompt_id": prompt.id, "error": error}
        return {"thought_answers": [row]}

    return GenerationMeasurement(model, spec, budget, measure_batch, error_rows)


Key = tuple[str, Thought | None]


def _key(prompt: Prompt) -> Key:
    return prompt.text, prompt.thought


class _Reader:
    """Computes the options' logits after texts; a prompt's identical texts are run only once."""

    def __init__(self, model: Model, spec: Thoughts, budget: TokenBudget) -> None:
        self._model, self._budget = model, budget
        self._answer_tokens = AnswerTokenizer(model, spec.answers)

    def reads_whole(self, prompt: Prompt) -> bool:
        """Whether the options of a prompt are read as whole texts."""
        return self._answer_tokens(tokenize(self._model, [prompt])[0]).whole

    def __call__(self, texts: Sequence[Iterable[Prompt]]) -> list[dict[Key, Logits]]:
        distinct = [{_key(text): text for text in of_prompt} for of_prompt in texts]
        prompts = [text for by_key in distinct for text in by_key.values()]
        tokenized, read = tokenize(self._model, prompts), option_logits
        logits = iter(
            read_all(self._model, tokenized, self._answer_tokens, self._budget, read=read)
        )
        return [dict(zip(by_key, logits, strict=False)) for by_key in distinct]


class _Writer:
    """Generates thoughts on prompts and changed prompts, and continues partial thoughts."""

    def __init__(self, model: Model, spec: Thoughts, budget: TokenBudget) -> None:
        self._model, self._spec, self._budget = model, spec, budget
        shared = {"draws", "temperature", "sampling_seed", "max_new_tokens"}
        self._generation = Generate(**spec.model_dump(include=shared))

    def studied(self, prompts: Sequence[Prompt]) -> list[Studied]:
        thoughts = self._own(prompts)
        changed = [list(changed_prompts(prompt)) for prompt in prompts]
        others = iter(self._drawn([variant.prompt for variants in changed for variant in variants]))
        studied = [
            Studied(prompt, draws, [(variant, next(others)) for variant in variants], {})
            for prompt, draws, variants in zip(prompts, thoughts, changed, strict=True)
        ]
        return self._continued(studied)

    def _own(self, prompts: Sequence[Prompt]) -> list[Draws]:
        """The thoughts on prompts: the existing ones if the model has any, otherwise new ones."""
        existing = [self._model.thoughts.get(prompt.id, ()) for prompt in prompts]
        if self._model.thoughts:
            for prompt, draws in zip(prompts, existing, strict=True):
                if len(draws) < self._spec.draws:
                    thoughts = counted(len(draws), "thought")
                    raise UserError(
                        f"{self._model.name} has {thoughts} on prompt {prompt.id}; expected "
                        f"{self._spec.draws}. Generate more thoughts, or lower --draws"
                    )
            return [draws[: self._spec.draws] for draws in existing]
        return self._drawn(prompts)

    def _drawn(self, prompts: Sequence[Prompt]) -> list[Draws]:
        """Thoughts on prompts, draw by draw; identical texts of a prompt get identical thoughts."""
        plain = [replace(prompt, thought=None, segments={}, roles={}) for prompt in prompts]
        draws = [self._write(plain, f" {draw}" if draw else "") for draw in range(self._spec.draws)]
        return [tuple(thoughts) for thoughts in zip(*draws, strict=True)]

    def _continued(self, studied: Sequence[Studied]) -> list[Studied]:
        """Add continuations of the first thought, resampled after each sentence but the last."""
        again: list[dict[int, Draws]] = [{} for _ in studied]
        heads = [
            (row, read, study.first.holding(study.first.sentences[:read]))
            for row, study in enumerate(studied)
            if study.first is not None
            for read in range(1, len(study.first.sentences))
        ]
        beginnings = [
            replace(
                after(studied[row].prompt, replace(head, after="")),
                id=f"{studied[row].prompt.id} {read}",
            )
            for row, read, head in heads
        ]
        for draw in range(self._spec.draws):
            rests = self._write(beginnings, f" again {draw}")
            for (row, read, head), rest in zip(heads, rests, strict=True):
                again[row][read] = (*again[row].get(read, ()), _joined(head, rest))
        return [replace(study, again=more) for study, more in zip(studied, again, strict=True)]

    def _write(self, prompts: Sequence[Prompt], draw: str) -> list[Thought]:
        thoughts: dict[int, Thought] = {}
        tokenized = tokenize(self._model, prompts)
        room = {"batch_tokens": self._budget.tokens, "new_tokens": self._generation.max_new_tokens}
        for places, batch in batches(self._model, tokenized, **room):
            texts = generate(self._model, batch, self._generation, draw=draw)
            for place, prompt, text in zip(places, batch.prompts, texts, strict=True):
                if not text.finite:
                    raise UserError(NOT_FINITE)
                thoughts[place] = cut_thought(self._model, prompt, text.token_ids).thought
        return [thoughts[place] for place in range(len(prompts))]


def _joined(head: Thought, rest: Thought) -> Thought:
    """A thought that joins the first sentences of another thought and their continuation."""
    if not rest.sentences:  # only white space, which belongs to the end mark
        return replace(head, ended=rest.ended)
    return replace(rest, before=head.before, sentences=(*head.sentences, *rest.sentences))


def _rows(model: Model, study: Studied, logits: Mapping[Key, Logits], direct: Logits) -> PromptRows:
    prompt = study.prompt
    key: Row = {"model": model.name, "prompt_id": prompt.id}
    gold, other = _compared(prompt, direct)

    def value(text: Prompt) -> float:
        read = logits[_key(text)]
        return read[gold] - read[other]

    if study.first is None:
        error = f"none of {len(study.own)} thoughts ended; allow more tokens (--max-new-tokens)"
        return {"thought_answers": [{**key, "error": error}]}
    everything = [direct, *logits.values()]
    if not np.isfinite([number for read in everything for number in read.values()]).all():
        return {"thought_answers": [{**key, "error": NOT_FINITE}]}
    at_once = {"reading": "direct", **_answered(direct, gold, other)}
    answers = [
        {**row, **_answered(logits[_key(text)], gold, other)} for row, text in study.readings(model)
    ]
    return {
        "thought_answers": [{**key, **row, "error": ""} for row in (at_once, *answers)],
        "thought_effects": [{**key, **row} for row in _effect_rows(study, value)],
        "sentence_effects": [{**key, **row} for row in _sentence_rows(study, value)],
    }


def _compared(prompt: Prompt, direct: Logits) -> tuple[str, str]:
    """The correct answer and the most probable other one (within the contrast, if there is one)."""
    gold = prompt.answer.gold
    names = prompt.answer.contrast or tuple(direct)
    others = [name for name in names if name != gold]
    return gold, max(others, key=lambda name: direct[name])


def _answered(logits: Logits, gold: str, other: str) -> Row:
    first, *others = (name for name in logits if logits[name] == max(logits.values()))
    answer = TIE if others else first
    correct = answer == gold and not others
    return {"value": logits[gold] - logits[other], "answer": answer, "correct": correct}


def _effect_rows(study: Studied, value: Callable[[Prompt], float]) -> Iterator[Row]:
    for changed, draws in study.changed:
        ended = [(t, u) for t, u in zip(study.own, draws, strict=True) if t.ended and u.ended]
        x, other = study.prompt, changed.prompt
        yield {
            "donor_kind": changed.donor.kind,
            "donor": changed.donor.name,
            "segment": changed.segment,
            "draws": len(ended),
            "draws_asked": len(draws),
            "own": [value(after(x, t)) for t, _ in ended],
            "changed": [value(after(other, t)) for t, _ in ended],
            "own_under_other": [value(after(x, u)) for _, u in ended],
            "changed_under_other": [value(after(other, u)) for _, u in ended],
            "error": "",
        }


def _sentence_rows(study: Studied, value: Callable[[Prompt], float]) -> Iterator[Row]:
    assert study.first is not None
    whole = value(after(study.prompt, study.first))
    count = len(study.first.sentences)
    others = [thought for _, thought in study.drawn if thought is not study.first]
    written = {0: others, **study.again, count: [study.first]}
    means = {
        read: fmean(values)
        for read, draws in written.items()
        if (values := [value(after(study.prompt, thought)) for thought in draws if thought.ended])
    }
    for place, sentence, (without, *replaced) in study.sentences():
        both = place in means and place + 1 in means
        yield {
            "sentence": place + 1,
            "sentences": count,
            "text": sentence.strip(),
            "left_out": whole - value(without),
            "exchanged": whole - value(replaced[0]) if replaced else None,
            "resampled": means[place + 1] - means[place] if both else None,
            "error": "",
        }
