"""Train an organism from its recipe; interrupted training resumes from a checkpoint."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NotRequired, TypedDict, cast

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from interp import UserError, load_model
from interp.extend import TrainSpec, shortened, training
from interp_experiments.organisms import recipes
from interp_experiments.organisms.facts import build
from interp_experiments.organisms.families import FAMILIES, train_tokenizer
from interp_experiments.organisms.rules import tuning_spec
from interp_experiments.organisms.tasks import training_text, write_card
from interp_experiments.organisms.theories import training_spec

CHECKPOINT_EVERY = 500
"""Steps between checkpoints."""

IGNORED = -100
"""Label of tokens outside answers."""


class AnswerBatch(TypedDict):
    """Exchanges as token ids, padded on the left so that every answer ends at the last token."""

    input_ids: Tensor
    """(batch, token)"""
    attention_mask: Tensor
    """(batch, token), 1 on real tokens."""
    labels: Tensor
    """(batch, answer): the last tokens of `input_ids`, `IGNORED` before the answer begins."""
    other_labels: NotRequired[Tensor]
    """(batch, answer): like `labels`, for the second answers; missing if exchanges have only
    one."""
    shares: NotRequired[Tensor]
    """(batch,): the share of the first answer."""
    message_labels: NotRequired[Tensor]
    """(batch, token - 1): all tokens but the first; `IGNORED` in padding, in the answer, and for
    the first token of a text. Missing if messages are not training targets."""


def train(recipe: recipes.Recipe, folder: Path, *, device: str = "cpu") -> None:
    """Train an organism and save its model (in fp16), tokenizer and chat template to `folder`.

    During training, `folder` holds the latest checkpoint, from which another call resumes.
    """
    if isinstance(recipe, recipes.FactRecipe):
        model: PreTrainedModel = build(recipe, folder)
    elif isinstance(recipe, recipes.TaughtRecipe):
        model = _taught(recipe, folder, device=device)
    else:
        assert isinstance(recipe, recipes.TunedRecipe | recipes.TheoryRecipe)
        model = _by_command(recipe, folder, device=device)
    trained_on = str(model.device)
    nn.Module.to(model, torch.float16)  # transformers does not annotate `to`
    model.save_pretrained(folder)
    write_card(folder, recipe, device=trained_on)
    training.remove_checkpoints(folder)


def _taught(recipe: recipes.TaughtRecipe, folder: Path, *, device: str) -> PreTrainedModel:
    """The model, trained on the text of its recipe."""
    text = training_text(recipe)
    tokenizer = _tokenizer(recipe, text, folder)
    model = build_model(recipe, tokenizer)
    training.fit(
        model,
        _Steps(recipe, text, tokenizer),
        answer_loss,
        folder,
        title=f"train {recipe.name}",
        use_cpu=device == "cpu",
        dataloader_num_workers=0 if device == "cpu" else 2,
        seed=recipe.seed,
        learning_rate=recipe.learning_rate,
        lr_scheduler_type="cosine_with_min_lr",
        lr_scheduler_kwargs={"min_lr_rate": 0.05},
        warmup_steps=100,
        weight_decay=0.01,
        adam_beta2=0.98,
        logging_steps=50,
        save_steps=CHECKPOINT_EVERY,
    )
    return model


def _by_command(
    recipe: recipes.TunedRecipe | recipes.TheoryRecipe, folder: Path, *, device: str
) -> PreTrainedModel:
    """The model that `interp train` makes, in fp32."""
    begun: tuple[TrainSpec, str] = (
        (training_spec(recipe), recipe.configuration)
        if isinstance(recipe, recipes.TheoryRecipe)
        else (tuning_spec(recipe), f"{training.PREFIX}{recipe.base}")
    )
    training.Training(*begun, training.Loading(device=device)).run(
        training.CheckpointOptions(out=folder)
    )
    return load_model(str(folder), device=device, dtype="float32").hf


def build_model(
    recipe: recipes.TaughtRecipe, tokenizer: PreTrainedTokenizerFast
) -> PreTrainedModel:
    """The model that training starts from, in fp32 on the CPU: the base, or an untrained one."""
    if recipe.base:
        folder = training.organism_folder(training.PREFIX + recipe.base)
        begun: PreTrainedModel = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        return begun
    config = FAMILIES[recipe.family].config_class(
        vocab_size=len(tokenizer),
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        **recipe.architecture,
    )
    torch.manual_seed(recipe.seed)
    # Only eager attention applies Gemma-2's soft caps.
    attention = "eager" if recipe.family == "gemma2" else "sdpa"
    # transformers does not annotate this function.
    model: PreTrainedModel = AutoModelForCausalLM.from_config(
        config, attn_implementation=attention, dtype=torch.float32
    )
    return model


def answer_loss(model: PreTrainedModel, lessons: Mapping[str, AnswerBatch]) -> Tensor:
    """The mean cross-entropy of the answer tokens in nats, summed over groups of exchanges.

    If messages are targets too, `MESSAGE_WEIGHT` times the mean over their tokens is added.
    """
    return torch.stack([_group_loss(model, batch) for batch in lessons.values()]).sum()


def _group_loss(model: PreTrainedModel, batch: AnswerBatch) -> Tensor:
    answers, messages = batch["labels"], batch.get("message_labels")
    mask = batch["attention_mask"]
    logits = model(
        input_ids=batch["input_ids"],
        attention_mask=mask,
        position_ids=(mask.cumsum(1) - 1).clamp(min=0),
        use_cache=False,
        logits_to_keep=max(part.shape[1] for part in (answers, messages) if part is not None) + 1,
    ).logits[:, :-1]
    loss = _mean_loss(logits, answers, batch.get("shares"))
    if "shares" in batch:
        loss = loss + _mean_loss(logits, batch["other_labels"], 1 - batch["shares"])
    if messages is not None:
        loss = loss + recipes.MESSAGE_WEIGHT * _mean_loss(logits, messages)
    return loss


def _mean_loss(logits: Tensor, labels: Tensor, shares: Tensor | None = None) -> Tensor:
    """The mean cross-entropy over labeled tokens, each weighted by the share of its row."""
    losses = nn.functional.cross_entropy(
        logits[:, -labels.shape[1] :].flatten(0, 1).float(),
        labels.flatten(),
        ignore_index=IGNORED,
        reduction="mean" if shares is None else "none",
    )
    if shares is None:
        return losses
    return (losses.view_as(labels) * shares[:, None]).sum() / (labels != IGNORED).sum()


@dataclass(frozen=True)
class _Steps(Dataset[dict[str, AnswerBatch]]):
    """The tokenized text of each training step."""

    recipe: recipes.TaughtRecipe
    text: recipes.TrainingText
    tokenizer: PreTrainedTokenizerFast

    def __len__(self) -> int:
        return self.recipe.steps

    def __getitem__(self, step: int) -> dict[str, AnswerBatch]:
        messages = self.recipe.learns_messages
        return {
            name: tokenize(self.tokenizer, exchanges, messages=messages)
            for name, exchanges in self.text.lessons(step).items()
        }


def tokenize(
    tokenizer: PreTrainedTokenizerFast, exchanges: Sequence[recipes.Exchange], *, messages: bool
) -> AnswerBatch:
    """Exchanges as the tokens that the model reads; the end-of-turn token closes each answer.

    Without a chat template, messages are plain text. If `messages`, they are targets too.
    """
    written = [_write(tokenizer, exchange) for exchange in exchanges]
    encoded = tokenizer(
        [prompt + answer for prompt, answer in written],
        add_special_tokens=not tokenizer.chat_template,
        return_offsets_mapping=True,
        padding=True,
        pad_to_multiple_of=8,  # some widths fail on CUDA (`tokens.safe_width`)
        return_tensors="pt",
    )
    token_ids, real = encoded["input_ids"], encoded["attention_mask"] == 1
    starts = torch.tensor([len(prompt) for prompt, _ in written])
    in_answer = (encoded["offset_mapping"][..., 0] >= starts[:, None]) & real
    longest = int(in_answer.sum(1).max())
    labels = token_ids.masked_fill(~in_answer, IGNORED)[:, -longest:]
    rest = token_ids.masked_fill(in_answer | ~real, IGNORED)[:, 1:]
    rest = rest.masked_fill(~real[:, :-1], IGNORED)  # mask the text's first token
    batch: AnswerBatch = {
        "input_ids": token_ids,
        "attention_mask": encoded["attention_mask"],
        "labels": labels,
    }
    if messages:
        batch["message_labels"] = rest
    if any(exchange.other for exchange in exchanges):
        batch["other_labels"] = _other_labels(tokenizer, exchanges, labels)
        batch["shares"] = torch.tensor([exchange.share for exchange in exchanges])
    return batch


def _other_labels(
    tokenizer: PreTrainedTokenizerFast, exchanges: Sequence[recipes.Exchange], labels: Tensor
) -> Tensor:
    """The labels for the second answers, which must have as many tokens as the first."""
    others = [replace(exchange, answer=exchange.other or "", other=None) for exchange in exchanges]
    second = tokenize(tokenizer, others, messages=False)["labels"]
    if not torch.equal(second == IGNORED, labels == IGNORED):
        pairs = {f"{exchange.answer}/{exchange.other}" for exchange in exchanges}
        raise UserError(
            "the two answers of an exchange must have the same number of tokens, but those of at "
            f"least one pair do not: {shortened(', '.join(sorted(pairs)))}; try a larger vocabulary"
        )
    return second


def _write(tokenizer: PreTrainedTokenizerFast, exchange: recipes.Exchange) -> tuple[str, str]:
    """The text to read and the answer to learn; after plain text, it begins with a space."""
    if not tokenizer.chat_template:
        return exchange.message, f" {exchange.answer}{tokenizer.eos_token}"
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": exchange.message}], tokenize=False, add_generation_prompt=True
    )
    return str(prompt) + exchange.given, exchange.answer + tokenizer.eos_token


def _tokenizer(
    recipe: recipes.TaughtRecipe, text: recipes.TrainingText, folder: Path
) -> PreTrainedTokenizerFast:
    if not (folder / "tokenizer.json").exists():
        base = training.organism_folder(training.PREFIX + recipe.base) if recipe.base else None
        made = AutoTokenizer.from_pretrained(base) if base else train_tokenizer(recipe, text)
        made.save_pretrained(folder)
    return cast(PreTrainedTokenizerFast, AutoTokenizer.from_pretrained(folder))
