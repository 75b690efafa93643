"""TransformerLens, by its bridge to the models of transformers."""

import logging
from collections import defaultdict
from collections.abc import Sequence
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor
from transformer_lens.model_bridge import TransformerBridge
from transformer_lens.tools.analysis import attribution_patching as patching
from transformers import AutoTokenizer

from benchmarks.conformance.libraries import Edges, Ids, Library, Site, Subject


class Adapter(Library):
    """Hooks by name; the bridge rewrites the model that it is given."""

    packages = ("transformer-lens",)
    by_module = False

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        logging.disable(logging.WARNING)
        hf = subject.hf
        hf.config.architectures = hf.config.architectures or [type(hf).__name__]
        with TemporaryDirectory() as folder:  # a tokenizer must have been loaded from somewhere
            subject.tokenizer.save_pretrained(folder)
            words = AutoTokenizer.from_pretrained(folder)
            options = {"hf_model": hf, "tokenizer": words, "device": "cpu"}
            self._bridge: Any = TransformerBridge.boot_transformers(subject.type, **options)

    def _kept(self, ids: Ids, name: str) -> Tensor:
        with torch.no_grad():
            _, found = self._bridge.run_with_cache(torch.tensor([ids]))
        return torch.as_tensor(found[name][0])

    def has(self, site: Site) -> bool:
        return _hook(site) in self._bridge.hook_dict

    def activation(self, ids: Ids, site: Site) -> Tensor:
        return self._kept(ids, _hook(site))

    def weights(self, ids: Ids, layer: int) -> Tensor:
        return self._kept(ids, f"blocks.{layer}.attn.hook_pattern")

    def patched(self, base: Ids, other: Ids, site: Site, position: int) -> float:
        name = _hook(site)

        def put(tensor: Tensor, hook: Any) -> Tensor:
            changed = tensor.clone()  # a replacement; one in place also reaches other readers
            changed[:, position] = vector
            return changed

        vector = self._kept(other, name)[position]
        with torch.no_grad():
            logits = self._bridge.run_with_hooks(torch.tensor([base]), fwd_hooks=[(name, put)])
        return float(self.subject.metric(logits))

    def edges(self, base: Ids, other: Ids) -> Edges:
        found = patching.attribution_patch(
            self._bridge, torch.tensor([other]), torch.tensor([base]),
            lambda logits: self.subject.metric(logits)[0],
            patching.EdgeAttributionConfig(granularity="edge"),
        )  # fmt: skip
        summed = defaultdict[tuple[str, str], float](float)
        for (writer, reader), score in (found.edge_scores or {}).items():  # one for each token
            summed[_name(writer), _name(reader)] += float(score)
        return summed

    def together(self, given: Sequence[Ids]) -> list[Tensor]:
        words, own = self.subject.tokenizer, {"input_ids": [list(ids) for ids in given]}
        rows = [*words.pad(own, padding_side="left", return_tensors="pt").values()]
        with torch.no_grad():
            _, found = self._bridge.run_with_cache(rows[0], attention_mask=rows[1])
        last = found[f"blocks.{self._bridge.cfg.n_layers - 1}.hook_resid_post"]
        return [own[-len(ids) :] for own, ids in zip(last, given, strict=True)]


def _hook(site: Site) -> str:
    return f"blocks.{site.layer}.hook_{site.name}"


def _name(node: Any) -> str:
    if node.kind in ("q_input", "k_input", "v_input"):
        return f"a{node.layer}.{'h' if node.kind[0] == 'q' else 'kv'}{node.head}.{node.kind[0]}"
    names = {"embed": "input", "logits": "logits", "attn_head_out": f"a{node.layer}.h{node.head}"}
    return names.get(node.kind, f"m{node.layer}")
