"""The tiny models of the table, and where transformers' own modules have what claims speak of.

The paths are written by hand, from the source code of each type in transformers, so that the truth
depends on no library's map. Models and prompts are those of `tests.zoo`.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

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
from tests.zoo.passes import End, Ids

ENCODER, ORGANISMS = "bert", "organisms"


class Parts(NamedTuple):
    """Paths of modules: of the layers, and within one; empty where a type has no such module.

    `final` is the norm before the logits. The outputs of `attention` and `mlp`, multiplied by the
    setting `scale`, are added to the stream; between the two, it is the input of `mid`. The MLP
    reads it by a norm and the module that reads the norm's output, and so do heads that have
    columns of their own: modules with {} for q, k and v, and the one that adds the heads.
    """

    layers: str
    final: str
    attention: str
    mlp: str
    mid: str
    scale: str
    mlp_norm: str
    mlp_reads: str
    heads_norm: str
    heads: str
    heads_out: str


_, *LINES = csv.reader(Path(__file__).with_name("types.csv").read_text("utf-8").splitlines())
PARTS = {name: Parts(*paths) for name, *paths in LINES}
"""The parts of each type: dense, scaled, normed after, parallel, experts, a hybrid, an encoder."""


class Site(NamedTuple):
    """A site of a layer, by the toolkit's name, and the module of transformers at whose end it is.

    What the module gives is multiplied by the factor before it is added to the stream.
    """

    name: str
    layer: int
    path: str
    end: End = "output"
    factor: float = 1.0


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
    labels = {"id2label": {0: "Yes", 1: "No"}, "pad_token_id": 0}
    encoder = Bert(BertConfig(vocab_size=64, intermediate_size=64, **sizes, **labels)).eval()
    randomize(encoder)
    read = (replace(own, answer=Label(("Yes", "No"), own.answer.gold)) for own in prompts())
    by_ids = {ids_of(prompt): prompt for prompt in read}
    return Subject(name, encoder.to(dtype), tokenizer(), by_ids, (0, 1))


PREMISES = ("premise1", "premise2")


def organism(planted: str, count: int) -> tuple[Subject, list[dict[str, list[int]]]]:
    """A packaged model in which one premise decides, and each prompt's tokens of each premise."""
    folder = Path(organism_folder(f"organism/dose-{100 if planted == 'premise1' else 0}"))
    words = AutoTokenizer.from_pretrained(folder)
    by_ids, premises = dict[Ids, Prompt](), []
    for prompt in with_donors(load_prompts(limit=count), count=DONORS):
        messages = [{"role": "user", "content": prompt.text}]
        text = words.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        read, before = words(text, add_special_tokens=False), text.index(prompt.text)
        spans = {name: [before + end for end in prompt.segments[name]] for name in PREMISES}
        tokens = {name: map(read.char_to_token, span) for name, span in spans.items()}
        premises.append({name: [*range(*ends)] for name, ends in tokens.items()})
        by_ids[tuple(read["input_ids"])] = prompt
    hf = AutoModelForCausalLM.from_pretrained(folder).eval()
    yes, no = (words.encode(word, add_special_tokens=False)[0] for word in ("Yes", "No"))
    return Subject(ORGANISMS, hf, words, by_ids, (yes, no)), premises
