"""The tiny models of the table, and where transformers' own modules have what claims speak of.

The paths are written by hand, from the source code of each type in transformers, so that the truth
depends on no library's map. Models and prompts are those of `tests.zoo`.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, BertConfig
from transformers import BertForSequenceClassification as Bert

from interp.models.organisms import organism_folder
from interp.prompts.answers import Label
from interp.prompts.mixing import with_donors
from interp.prompts.prompt import DONORS, Prompt
from interp.prompts.systems import load_prompts
from tests.zoo.build import build, randomize, tokenizer
from tests.zoo.material import ids_of, options, prompts
from tests.zoo.passes import Ids

ENCODER, ORGANISMS = "bert", "organisms"


class Parts(NamedTuple):
    """Paths of modules: of the layers, and within one; empty where a type has no such module."""

    layers: str
    final: str
    """The norm that the stream passes before the logits."""
    attention: str
    mlp: str
    """The modules whose outputs are what attention and MLP add to the stream."""
    mid: str
    """The module whose input is the stream between the two; empty if they read the same."""
    scale: str
    """The setting with which both outputs are multiplied before they are added."""
    mlp_norm: str
    mlp_reads: str
    """How the MLP reads the stream: a norm, and the module that reads the norm's output."""
    heads_norm: str
    heads: str
    heads_out: str
    """The same of heads, with {} for q, k and v, and the module that adds them, if heads have
    columns of their own."""


_, *LINES = csv.reader(Path(__file__).with_name("types.csv").read_text("utf-8").splitlines())
PARTS = {name: Parts(*paths) for name, *paths in LINES}
"""The parts of each type: dense, scaled, normed after, parallel, experts, a hybrid, an encoder."""


@dataclass
class Subject:
    """A model for one library, which may rewrite it, and its prompts."""

    type: str
    hf: Any
    tokenizer: Any
    prompts: Mapping[Ids, Prompt]
    """By their tokens: a prompt, its counterpart, and the shorter ones of another pair."""
    options: tuple[int, int | None]
    """Columns of the logits; the metric is the first minus the second, if there is one."""

    @property
    def ids(self) -> Sequence[Ids]:
        """The tokens of the prompts, in order."""
        return list(self.prompts)

    @property
    def encoder(self) -> bool:
        """Whether the answer is a class, so that there is one place for it."""
        return self.type == ENCODER

    def metric(self, logits: torch.Tensor) -> torch.Tensor:
        """The difference of two logits, or one, for each row of logits (row, [token,] column)."""
        last = logits if logits.dim() == 2 else logits[:, -1]
        first, second = self.options
        return last[:, first] if second is None else last[:, first] - last[:, second]


def subject(name: str, dtype: torch.dtype = torch.float32) -> Subject:
    """A new model of a type with the same weights in each call."""
    if name != ENCODER:
        by_ids = {ids_of(prompt): prompt for prompt in prompts()}
        return Subject(name, build(name, dtype=dtype).hf, tokenizer(), by_ids, options())
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = BertConfig(vocab_size=64, intermediate_size=64, num_labels=2, pad_token_id=0, **sizes)
    config.id2label = {0: "Yes", 1: "No"}
    encoder = Bert(config).eval()
    randomize(encoder)
    read = (replace(own, answer=Label(("Yes", "No"), own.answer.gold)) for own in prompts())
    by_ids = {ids_of(prompt): prompt for prompt in read}
    return Subject(name, encoder.to(dtype), tokenizer(), by_ids, (0, 1))


Planted = Literal["premise1", "premise2"]


def organism(planted: Planted, count: int) -> tuple[Subject, list[dict[str, list[int]]]]:
    """A packaged model in which one premise decides, and where its prompts' premises are.

    Returns:
        The subject, and for each prompt the tokens of each premise.
    """
    folder = Path(organism_folder(f"organism/dose-{100 if planted == 'premise1' else 0}"))
    words = AutoTokenizer.from_pretrained(folder)
    by_ids: dict[Ids, Prompt] = {}
    premises = []
    for prompt in with_donors(load_prompts(limit=count), count=DONORS):
        messages = [{"role": "user", "content": prompt.text}]
        text = words.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        read = words(text, add_special_tokens=False, return_offsets_mapping=True)
        before, offsets = text.index(prompt.text), enumerate(read["offset_mapping"])
        spans = [(place, first - before, last - before) for place, (first, last) in offsets]
        premises.append({
            name: [place for place, first, last in spans if first < end and start < last]
            for name, (start, end) in prompt.segments.items()
            if name.startswith("premise")
        })  # fmt: skip
        by_ids[tuple(read["input_ids"])] = prompt
    hf = AutoModelForCausalLM.from_pretrained(folder).eval()
    yes, no = (words.encode(word, add_special_tokens=False)[0] for word in ("Yes", "No"))
    return Subject(ORGANISMS, hf, words, by_ids, (yes, no)), premises
