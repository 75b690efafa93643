import json

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import interp
from benchmarks import gpu
from interp.reading.tokens import tokenize


@pytest.fixture(scope="module")
def phrasings():
    """Prompts in the order of a run, with the phrasings of an instance together."""
    return interp.load_prompts(limit="all")[:40]


@pytest.fixture
def model():
    return gpu.random_model("tiny", torch.device("cpu"))


def test_the_benchmark_runs_and_keeps_its_figures(tmp_path, phrasings, monkeypatch, capsys):
    monkeypatch.setattr(interp, "load_prompts", lambda **options: phrasings)
    record = tmp_path / "gpu.json"
    gpu.main(["--shape", "tiny", "--prompts", "40", "--sweep", "--out", str(record)])
    kept = json.loads(record.read_text())
    assert kept["shape"]["name"] == "tiny"
    assert kept["dtype"] == "float32" or torch.cuda.is_available()
    rows = {row["work"]: row for row in kept["rows"]}
    assert len(rows) == 4 + len(gpu.SWEEP)
    for name in ("evaluate", "attribute", "plain transformers"):
        assert rows[name]["prompts"] == 40
        assert 0 < rows[name]["share_of_peak"] <= rows[name]["share_if_all_were_read"]
    printed = capsys.readouterr().out
    assert "tokenizing alone" in printed
    assert "40 prompts of" in printed


@pytest.mark.parametrize("gradient", [False, True])
def test_operations_are_those_that_pytorch_counts(model, prompts, gradient):
    (prompt,) = tokenize(model, prompts[:1])
    model.hf.set_attn_implementation("eager")  # PyTorch counts no fused attention on a CPU
    embeddings = model.hf.get_input_embeddings()(torch.tensor([prompt.token_ids])).detach()
    embeddings.requires_grad_(gradient)
    with model.measuring(), FlopCounterMode(display=False) as counter:
        logits = model.hf(inputs_embeds=embeddings, logits_to_keep=1).logits
        if gradient:
            logits.sum().backward()
    tokens, config = len(prompt), model.hf.config
    counts = torch.tensor([[tokens], [tokens]], dtype=torch.float64)
    expected = gpu.operations(model, counts, 1, gradient=gradient)
    # Eager attention also multiplies the pairs that the causal mask hides.
    hidden = 4 * config.hidden_size * tokens * (tokens - 1) / 2 * config.num_hidden_layers
    expected += 3 * hidden if gradient else hidden
    assert counter.get_total_flops() == expected


def test_tokens_are_counted_as_they_are_read(model, phrasings):
    with gpu.counted(model) as read:
        interp.evaluate(model, phrasings)
    tokens, seen = torch.cat(read, 1)
    whole = sum(map(len, tokenize(model, phrasings)))
    assert 0 < tokens.sum() < 0.8 * whole
    assert (tokens <= seen).all()
    with gpu.counted(model) as read:
        interp.attribute(model, phrasings)
    assert torch.cat(read, 1)[0].sum() == whole
    assert not model.hf.base_model._forward_pre_hooks


def test_prompts_are_whole_shards_in_the_order_of_a_run(monkeypatch):
    shard = gpu.SHARD_PROMPTS
    monkeypatch.setattr(interp, "load_prompts", lambda **options: range(10 * shard))
    chosen = gpu.some_prompts(2 * shard)
    assert chosen == [*range(shard), *range(5 * shard, 6 * shard)]
    assert gpu.some_prompts(7) == list(range(7))
