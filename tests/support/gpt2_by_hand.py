"""GPT-2 with an input of its own for each reader, written out without interp's hooks and graph.

In a circuit's run a reader reads, for each writer before it, what this writer adds in the run if
there is an edge between them, and otherwise what it adds for the corrupt prompt.
"""

import math

import torch
from transformers import DynamicCache


class ByHand:
    """Circuits of a small GPT-2 in float64, for prompts of equal length, edge by edge by name."""

    def __init__(self, model):
        self._hf = model.hf
        self._config = model.hf.config
        self._weights = {name: t.double() for name, t in model.hf.state_dict().items()}

    def metric(self, clean, corrupt, answers, has_edge):
        """The logit difference of the clean prompt with the edges for which `has_edge` is true."""
        logits = self._logits(clean, corrupt, has_edge)
        positive, negative = (logits[list(ids)] for ids in (answers.positive, answers.negative))
        return float(positive.logsumexp(0) - negative.logsumexp(0))

    def whole_metric(self, clean, corrupt, options, has_edge):
        """The difference of two options' log-probabilities behind the clean prompt with some edges.

        An option is a list of token lists. transformers reads them behind the keys and values
        written here, one after another.
        """
        first = self._logits(clean, corrupt, has_edge)
        layers = [
            tuple(torch.stack([head[site] for head in heads])[None] for site in "kv")
            for heads in self._heads
        ]
        totals = []
        for ways in options:
            found = []
            for way in ways:
                cache = DynamicCache()
                for layer, (keys, values) in enumerate(layers):
                    cache.update(keys, values, layer)
                logits = self._hf(torch.tensor([way]), past_key_values=cache).logits[0].double()
                steps = torch.cat([first[None], logits[:-1]]).log_softmax(-1)
                found.append(sum(steps[place, token] for place, token in enumerate(way)))
            totals.append(torch.stack(found).logsumexp(0))
        return float(totals[0] - totals[1])

    def _logits(self, clean, corrupt, has_edge):
        source = self._writers(corrupt, lambda writer, reader: True, None)
        found = self._writers(clean, has_edge, source)
        last = self._norm(self._read(found, source, has_edge, "logits"), "transformer.ln_f")[-1]
        return last @ self._weights["lm_head.weight"].T

    def _writers(self, ids, has_edge, source):
        weights = self._weights
        embedded = weights["transformer.wte.weight"][list(ids)]
        added = {"input": embedded + weights["transformer.wpe.weight"][: len(ids)]}
        self._heads = [[] for _ in range(self._config.n_layer)]
        for layer in range(self._config.n_layer):
            heads = {
                f"a{layer}.h{head}": self._head(added, source, has_edge, layer, head)
                for head in range(self._config.n_head)
            }
            added |= heads
            # The bias of the output projection is the same in both prompts.
            added[f"b{layer}"] = weights[f"transformer.h.{layer}.attn.c_proj.bias"].expand(
                len(ids), -1
            )
            added[f"m{layer}"] = self._mlp(added, source, has_edge, layer)
        return added

    def _read(self, added, source, has_edge, reader):
        return sum(
            own if writer[0] == "b" or has_edge(writer, reader) else source[writer]
            for writer, own in added.items()
        )

    def _norm(self, stream, name):
        normed = (stream - stream.mean(-1, keepdim=True)) / torch.sqrt(
            stream.var(-1, correction=0, keepdim=True) + self._config.layer_norm_epsilon
        )
        return normed * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]

    def _head(self, added, source, has_edge, layer, head):
        size = self._config.n_embd // self._config.n_head
        own, name = slice(head * size, (head + 1) * size), f"transformer.h.{layer}"
        weight = self._weights[f"{name}.attn.c_attn.weight"]
        bias = self._weights[f"{name}.attn.c_attn.bias"]
        parts = {}
        for place, (site, kind) in enumerate((("q", "h"), ("k", "kv"), ("v", "kv"))):
            stream = self._read(added, source, has_edge, f"a{layer}.{kind}{head}.{site}")
            columns = slice(place * self._config.n_embd, (place + 1) * self._config.n_embd)
            read = self._norm(stream, f"{name}.ln_1")
            parts[site] = read @ weight[:, columns][:, own] + bias[columns][own]
        self._heads[layer].append(parts)
        scores = parts["q"] @ parts["k"].T / math.sqrt(size)
        later = torch.ones_like(scores).triu(1).bool()
        z = scores.masked_fill(later, -torch.inf).softmax(-1) @ parts["v"]
        return z @ self._weights[f"{name}.attn.c_proj.weight"][own]

    def _mlp(self, added, source, has_edge, layer):
        name = f"transformer.h.{layer}"
        read = self._norm(self._read(added, source, has_edge, f"m{layer}"), f"{name}.ln_2")
        within = read @ self._weights[f"{name}.mlp.c_fc.weight"]
        within = within + self._weights[f"{name}.mlp.c_fc.bias"]
        bent = torch.nn.functional.gelu(within, approximate="tanh")
        out = bent @ self._weights[f"{name}.mlp.c_proj.weight"]
        return out + self._weights[f"{name}.mlp.c_proj.bias"]
