"""Train an organism from its recipe: text, tokenizer, weights; resumable from its checkpoint."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from interp.console import Progress
from interp_experiments.organisms.card import write_card
from interp_experiments.organisms.families import FAMILIES
from interp_experiments.organisms.lessons import MESSAGE_WEIGHT, Exchange, TrainingText
from interp_experiments.organisms.recipes import Recipe
from interp_experiments.organisms.tasks import task_of
from interp_experiments.organisms.tokenizer import train_tokenizer

CHECKPOINT = "checkpoint.safetensors"
CHECKPOINT_EVERY = 500
"""Steps between checkpoints."""

WARM_UP_STEPS = 100
FINAL_RATE = 0.05
"""Share of the learning rate that the cosine schedule ends with."""

WIDTH_MULTIPLE = 8
"""Batches are this wide or a multiple: some widths go wrong on CUDA (`tokens.safe_width`)."""

IGNORED = -100
"""Label of tokens that are not part of an answer."""


@dataclass(frozen=True, slots=True)
class AnswerBatch:
    """Exchanges as token ids, padded on the left so that the answers end together."""

    input_ids: Tensor
    """(batch, token)"""
    attention_mask: Tensor
    """(batch, token), 1 on real tokens."""
    labels: Tensor
    """(batch, answer): the last tokens of `input_ids`, `IGNORED` before the answer begins."""
    message_labels: Tensor | None
    """(batch, token - 1): all tokens but the first; `IGNORED` in padding and answer, and where a
    text begins. None if messages are not learned."""


def train(recipe: Recipe, folder: Path, *, device: str = "cpu") -> None:
    """Train an organism and save model, tokenizer and chat template into `folder`.

    Weights are saved in fp16. `folder` holds the last checkpoint during training; calling
    again resumes from it.
    """
    text = task_of(recipe).text(recipe)
    tokenizer = _tokenizer(recipe, text, folder)
    model = build_model(recipe, tokenizer).train()
    nn.Module.to(model, device)  # transformers' own `to` has lost its types
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=recipe.learning_rate, weight_decay=0.01, betas=(0.9, 0.98)
    )
    checkpoint = folder / CHECKPOINT
    start = _restore(checkpoint, model, optimizer) if checkpoint.exists() else 0
    with Progress(f"train {recipe.name}", total=recipe.steps, done=start, unit="steps") as progress:
        batches = _batches(recipe, text, tokenizer, start, workers=2 if device != "cpu" else 0)
        for step, batch in enumerate(batches, start=start):
            for group in optimizer.param_groups:
                group["lr"] = recipe.learning_rate * schedule(step, recipe.steps)
            losses = torch.stack([answer_loss(model, part, device) for part in batch.values()])
            torch.autograd.backward(losses.sum())
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            note = ""
            if step % 50 == 0:
                parts = zip(losses.tolist(), batch, strict=True)
                note = "loss " + ", ".join(f"{loss:.3f} {name}" for loss, name in parts)
            progress.advance(1, note=note)
            if (step + 1) % CHECKPOINT_EVERY == 0:
                _checkpoint(checkpoint, model, optimizer, step + 1)
    nn.Module.to(model, torch.float16)
    model.save_pretrained(folder)
    planted = task_of(recipe).planted(recipe)
    write_card(folder, recipe, planted, device=str(model.device))
    checkpoint.unlink(missing_ok=True)


def build_model(recipe: Recipe, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    """The untrained model of a recipe, in fp32 on the CPU."""
    config = FAMILIES[recipe.family].config_class(
        vocab_size=len(tokenizer),
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        **recipe.architecture,
    )
    torch.manual_seed(recipe.seed)
    # The soft caps of Gemma-2 exist in eager attention only.
    attention = "eager" if recipe.family == "gemma2" else "sdpa"
    # transformers gives this function no types.
    model: PreTrainedModel = AutoModelForCausalLM.from_config(  # type: ignore[no-untyped-call]
        config, attn_implementation=attention, dtype=torch.float32
    )
    return model


def schedule(step: int, steps: int) -> float:
    """Share of the learning rate at a step: linear warm-up, then a cosine down to `FINAL_RATE`."""
    if step < WARM_UP_STEPS:
        return (step + 1) / WARM_UP_STEPS
    progress = (step - WARM_UP_STEPS) / max(1, steps - WARM_UP_STEPS)
    return FINAL_RATE + (1 - FINAL_RATE) * (1 + math.cos(math.pi * progress)) / 2


def answer_loss(model: PreTrainedModel, batch: AnswerBatch, device: str) -> Tensor:
    """Mean cross-entropy, in nats, over the answer tokens of a batch.

    Where messages are learned too, the mean over their tokens is added, times `MESSAGE_WEIGHT`.
    """
    parts = [batch.labels] if batch.message_labels is None else [batch.labels, batch.message_labels]
    labels = [part.to(device, non_blocking=True) for part in parts]
    mask = batch.attention_mask.to(device, non_blocking=True)
    logits = model(
        input_ids=batch.input_ids.to(device, non_blocking=True),
        attention_mask=mask,
        position_ids=(mask.cumsum(1) - 1).clamp(min=0),
        use_cache=False,
        logits_to_keep=max(part.shape[1] for part in labels) + 1,
    ).logits[:, :-1]
    losses = [
        nn.functional.cross_entropy(
            logits[:, -part.shape[1] :].flatten(0, 1).float(),
            part.flatten(),
            ignore_index=IGNORED,
        )
        for part in labels
    ]
    return losses[0] if len(losses) == 1 else losses[0] + MESSAGE_WEIGHT * losses[1]


class _Steps(Dataset[dict[str, AnswerBatch]]):
    """The tokenized text of each training step from `start` on."""

    def __init__(
        self, recipe: Recipe, text: TrainingText, tokenizer: PreTrainedTokenizerFast, start: int
    ) -> None:
        self._text, self._tokenizer, self._start = text, tokenizer, start
        self._messages = recipe.learns_messages
        self._length = recipe.steps - start

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> dict[str, AnswerBatch]:
        if index >= self._length:
            raise IndexError(index)
        return {
            name: tokenize(self._tokenizer, exchanges, messages=self._messages)
            for name, exchanges in self._text.lessons(self._start + index).items()
        }


def _batches(
    recipe: Recipe,
    text: TrainingText,
    tokenizer: PreTrainedTokenizerFast,
    start: int,
    workers: int,
) -> Iterator[dict[str, AnswerBatch]]:
    steps = _Steps(recipe, text, tokenizer, start)
    return iter(DataLoader(steps, batch_size=None, num_workers=workers))


def tokenize(
    tokenizer: PreTrainedTokenizerFast, exchanges: Sequence[Exchange], *, messages: bool
) -> AnswerBatch:
    """Exchanges as the model will read them, each answer closed by the end-of-turn token.

    Args:
        tokenizer: its chat template writes the messages; without one they are plain text.
        exchanges: messages and answers.
        messages: whether the messages are learned too.
    """
    written = [_write(tokenizer, exchange) for exchange in exchanges]
    encoded = tokenizer(
        [prompt + answer for prompt, answer in written],
        add_special_tokens=not tokenizer.chat_template,
        return_offsets_mapping=True,
        padding=True,
        pad_to_multiple_of=WIDTH_MULTIPLE,
        return_tensors="pt",
    )
    token_ids, real = encoded["input_ids"], encoded["attention_mask"] == 1
    starts = torch.tensor([len(prompt) for prompt, _ in written])
    in_answer = (encoded["offset_mapping"][..., 0] >= starts[:, None]) & real
    longest = int(in_answer.sum(1).max())
    labels = token_ids.masked_fill(~in_answer, IGNORED)[:, -longest:]
    rest = token_ids.masked_fill(in_answer | ~real, IGNORED)[:, 1:]
    rest = rest.masked_fill(~real[:, :-1], IGNORED)  # what follows padding is a first token
    return AnswerBatch(token_ids, encoded["attention_mask"], labels, rest if messages else None)


def _write(tokenizer: PreTrainedTokenizerFast, exchange: Exchange) -> tuple[str, str]:
    """Prompt and answer as text; after a plain message the answer begins with a space."""
    if not tokenizer.chat_template:
        return exchange.message, f" {exchange.answer}{tokenizer.eos_token}"
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": exchange.message}],
        tokenize=False,
        add_generation_prompt=True,
    )
    return str(prompt), exchange.answer + tokenizer.eos_token


def _tokenizer(recipe: Recipe, text: TrainingText, folder: Path) -> PreTrainedTokenizerFast:
    if not (folder / "tokenizer.json").exists():
        train_tokenizer(recipe, text).save_pretrained(folder)
    return cast(PreTrainedTokenizerFast, AutoTokenizer.from_pretrained(folder))


def _checkpoint(
    path: Path, model: PreTrainedModel, optimizer: torch.optim.Optimizer, step: int
) -> None:
    tensors = {}
    for name, parameter in model.named_parameters():
        state = optimizer.state[parameter]
        tensors[f"weight {name}"] = parameter.data
        tensors[f"mean {name}"] = state["exp_avg"]
        tensors[f"square {name}"] = state["exp_avg_sq"]
    unfinished = path.with_suffix(".tmp")
    save_file(tensors, unfinished, metadata={"step": str(step)})
    unfinished.replace(path)


def _restore(path: Path, model: PreTrainedModel, optimizer: torch.optim.Optimizer) -> int:
    with safe_open(path, framework="pt", device=str(model.device)) as checkpoint:
        step = int(checkpoint.metadata()["step"])
        for name, parameter in model.named_parameters():
            parameter.data.copy_(checkpoint.get_tensor(f"weight {name}"))
            optimizer.state[parameter] = {
                "step": torch.tensor(float(step)),
                "exp_avg": checkpoint.get_tensor(f"mean {name}"),
                "exp_avg_sq": checkpoint.get_tensor(f"square {name}"),
            }
    return step
