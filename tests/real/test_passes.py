"""Numbers of a real model against plain passes of transformers, which loads its file by itself."""

import pandas as pd
import pytest
import torch

import interp
from interp_probes.api import probe_familiarity
from tests.zoo.oracle import Oracle

ROWS = [
    ("fish", "true", "Yes", "All fish can swim.", "A trout is a fish.", "Can a trout swim?"),
    ("fish", "false", "No", "All fish must sing.", "A trout is a fish.", "Can a trout swim?"),
    ("city", "true", "Yes", "Anne lives in Paris.", "Paris is in France.", "Is Anne in France?"),
    ("city", "false", "No", "Anne lives in Rome.", "Paris is in France.", "Is Anne in France?"),
]
HEAD = -1
"""The head that is patched: the last."""


@pytest.fixture(scope="module")
def prompts():
    """Two pairs of prompts of one length each."""
    rows = [(*row[:-1], f"{row[-1]} Answer Yes or No.") for row in ROWS]
    names = ["pair", "side", "gold", "premise1", "premise2", "question"]
    return interp.read_pairs(pd.DataFrame(rows, columns=names))


@pytest.fixture(scope="module")
def layers(plain):
    """The first layer and one in the middle, which may attend to all tokens or to some."""
    return 0, plain[0].config.num_hidden_layers // 2


@pytest.fixture(scope="module")
def options(plain):
    """The tokens of the answers, as they follow a template, or a text."""
    return tuple(first_token(plain[1], option) for option in ("Yes", "No"))


def first_token(tokenizer, option):
    text = option if tokenizer.chat_template else f" {option}"
    (token,) = tokenizer(text, add_special_tokens=False)["input_ids"]
    return token


@pytest.fixture(scope="module")
def ids(plain, prompts):
    """The tokens of each prompt, as transformers writes them."""
    _, tokenizer = plain
    return {prompt.id: written(tokenizer, prompt.text) for prompt in prompts}


@pytest.fixture(scope="module")
def oracles(plain, ids, options):
    """Plain passes of the pairs; the base is the clean prompt. A short one finds the layers."""
    hf, _ = plain
    short = ids["fish/true"][:8]
    finder = Oracle(hf, short, short, options)
    return {
        pair: Oracle(hf, ids[f"{pair}/true"], ids[f"{pair}/false"], options, like=finder)
        for pair in ("fish", "city")
    }


def written(tokenizer, text):
    """The tokens of a prompt in the model's chat template, if it has one."""
    if tokenizer.chat_template is None:
        return tuple(tokenizer(text)["input_ids"])
    turns = [{"role": "user", "content": text}]
    given = tokenizer.apply_chat_template(turns, add_generation_prompt=True, return_dict=True)
    return tuple(given["input_ids"])


def test_probabilities_of_the_options(model, plain, prompts, ids):
    hf, tokenizer = plain
    options = interp.evaluate(model, prompts).table("option_probabilities")
    for row in options.to_dict("records"):
        with torch.no_grad():
            logits = hf(torch.tensor([ids[row["prompt_id"]]])).logits[0, -1].double()
        token = first_token(tokenizer, row["option"])
        assert tuple(row["token_ids"]) == (token,)
        expected = logits.softmax(-1)[token]
        assert row["probability"] == pytest.approx(float(expected), abs=1e-5)


def test_generated_texts(model, plain, prompts, ids):
    hf, tokenizer = plain
    texts = interp.generate(model, prompts, max_new_tokens=12).completions
    for row in texts.to_dict("records"):
        given = torch.tensor([ids[row["prompt_id"]]])
        mask = torch.ones_like(given)
        out = hf.generate(given, attention_mask=mask, max_new_tokens=12, do_sample=False)
        own = out[0, given.shape[1] :]
        assert row["completion"] == tokenizer.decode(own, skip_special_tokens=True).strip()


@pytest.mark.parametrize("method", ["input_gradient", "input_x_gradient", "attention"])
def test_scores_of_tokens(model, prompts, ids, oracles, method):
    found = interp.attribute(
        model, prompts, methods=(method,), target="contrast", keep_tokens=True
    ).table("token_scores")
    for prompt in prompts:
        oracle = oracles[prompt.pair_id]
        if method == "attention":
            expected = oracle.attention(ids[prompt.id])
        else:
            gradient, embedded = oracle.gradient(ids[prompt.id])
            expected = (gradient * embedded).sum(-1)
            if method == "input_gradient":
                expected = gradient.norm(dim=-1)
        got = torch.tensor(found.loc[found["prompt_id"] == prompt.id, "score"].tolist())
        assert float((got - expected).abs().max() / expected.abs().max()) < 1e-4


def test_effects_of_segments(model, plain, prompts, options):
    hf, tokenizer = plain
    found = interp.effects(model, prompts, donors=1).table("coalition_values")
    rows = found[(found["donor_kind"] == "counterpart") & (found["prompt_id"] == "city/true")]
    donor, own = prompts[3], prompts[2]
    sign = 1 if plain_contrast(hf, written(tokenizer, own.text), options) > 0 else -1
    for row in rows.to_dict("records"):
        kept = {name for place, name in enumerate(row["segments"]) if row["coalition"] >> place & 1}
        text = own.text
        for name in set(row["segments"]) - kept:
            text = text.replace(own.segment_text(name), donor.segment_text(name))
        with torch.no_grad():
            logits = hf(torch.tensor([written(tokenizer, text)])).logits[0, -1].double()
        # A value is the log-odds of the model's own answer to the prompt.
        expected = float(logits[options[0]] - logits[options[1]]) * sign
        assert row["values"][0] == pytest.approx(expected, abs=1e-4)
    assert len(rows) == 2 ** len(rows["segments"].iloc[0])


@torch.no_grad()
def plain_contrast(hf, ids, options):
    """The first option's logit minus the second's."""
    logits = hf(torch.tensor([ids])).logits[0, -1].double()
    return float(logits[options[0]] - logits[options[1]])


@pytest.mark.parametrize("site", ["resid_pre", "resid_post", "attn_out", "mlp_out", "z"])
def test_patches(model, prompts, oracles, layers, site):
    heads = model.hf.config.num_attention_heads
    head = HEAD % heads
    found = interp.patch(
        model,
        prompts,
        sites=(site,),
        layers=",".join(map(str, layers)),
        **({"heads": str(head)} if site == "z" else {}),
        granularity="position",
        direction="noising",
    ).patches
    for pair, oracle in oracles.items():
        apart = zip(oracle.base, oracle.source, strict=True)
        first = next(place for place, (own, other) in enumerate(apart) if own != other)
        for layer in layers:
            for position in (first, len(oracle.base) - 1):
                cell = found[
                    (found["pair_id"] == pair)
                    & (found["layer"] == layer)
                    & (found["position"] == position)
                ]
                of = (head, heads) if site == "z" else None
                (effect,) = cell["effect"]
                expected = oracle.patched(site, layer, position, of) - oracle.metric
                assert effect == pytest.approx(expected, abs=1e-4)


def test_edges(model, plain, prompts, ids, options):
    """A reader that alone reads what a writer adds in the other prompt."""
    hf, _ = plain
    found = interp.edges(model, prompts[:2], methods=("exact",), sample=1).table("edges")
    kinds = set()
    for row in found.to_dict("records"):
        base, source = ids["fish/true"], ids["fish/false"]
        change = added(hf, source, row["writer"]) - added(hf, base, row["writer"])
        patched = reading(hf, base, row["reader"], change)
        effect = float(patched[options[0]] - patched[options[1]])
        expected = effect - plain_contrast(hf, base, options)
        assert row["effect"] == pytest.approx(expected, abs=1e-4)
        kinds.add(row["reader"].split(".")[-1][0])
    assert kinds == {"q", "k", "v", "m", "l"}


@torch.no_grad()
def added(hf, ids, writer):
    """What a writer adds to the residual stream in a plain pass."""
    if writer == "input":
        return hf.get_input_embeddings()(torch.tensor([ids]))
    number, *head = (int(part[1:]) for part in writer.split("."))
    layer = hf.model.layers[number]
    if not head:
        return seen(hf, ids, getattr(layer, "post_feedforward_layernorm", layer.mlp), "output")
    matrix = layer.self_attn.o_proj
    width = matrix.in_features // hf.config.num_attention_heads
    own = slice(head[0] * width, (head[0] + 1) * width)
    alone = seen(hf, ids, matrix, "input")[..., own] @ matrix.weight[:, own].T
    if not sandwiched(layer):
        return alone
    # A norm behind the attention scales what all heads add; a head's part is scaled with it.
    norm, together = layer.post_attention_layernorm, seen(hf, ids, matrix, "output")
    size = (together.square().mean(-1, keepdim=True) + norm.eps).rsqrt()
    return alone * size * norm(torch.ones_like(alone)) * (1 + norm.eps) ** 0.5


def sandwiched(layer):
    """Whether norms follow a layer's attention and MLP."""
    return hasattr(layer, "post_feedforward_layernorm")


@torch.no_grad()
def reading(hf, ids, reader, change):
    """The logits of a pass in which one reader alone reads a changed stream."""
    if reader == "logits":
        stream = seen(hf, ids, hf.model.layers[-1], "output") + change
        return hf.lm_head(hf.model.norm(stream))[0, -1].double()
    number, *own = reader.split(".")
    layer = hf.model.layers[int(number[1:])]
    if not own:
        name = "pre_feedforward_layernorm" if sandwiched(layer) else "post_attention_layernorm"
        norm, module, columns = getattr(layer, name), layer.mlp, slice(None)
    else:
        norm = layer.input_layernorm
        module = getattr(layer.self_attn, f"{own[1]}_proj")
        width = layer.self_attn.head_dim
        head = int("".join(filter(str.isdigit, own[0])))
        columns = slice(head * width, (head + 1) * width)
    instead = module(norm(seen(hf, ids, norm, "input") + change))

    def put(_module, _args, output):
        output = output.clone()
        output[..., columns] = instead[..., columns]
        return output

    hook = module.register_forward_hook(put)
    try:
        return hf(torch.tensor([ids])).logits[0, -1].double()
    finally:
        hook.remove()


def seen(hf, ids, module, end):
    """What a module reads or returns in a plain pass."""
    held = []
    hook = module.register_forward_hook(
        lambda _module, args, output: held.append(args[0] if end == "input" else output)
    )
    with torch.no_grad():
        hf(torch.tensor([ids]))
    hook.remove()
    return held[0]


def test_activations(model, plain, prompts, ids, layers):
    hf, _ = plain
    found = interp.activations(model, prompts[:1], sites=("resid_post",), layers=str(layers[1]))
    (row,) = found.table("activation_vectors").to_dict("records")
    expected = seen(hf, ids[prompts[0].id], hf.model.layers[layers[1]], "output")[
        0, row["position"]
    ]
    assert torch.allclose(torch.tensor(row["vector"]), expected, atol=1e-4, rtol=1e-4)


def test_familiarity(model, plain):
    hf, tokenizer = plain
    (fact,) = interp.load_facts("rulebreakers")[:1]
    table = probe_familiarity(model, [fact]).table("familiarity")
    (row,) = table[table["wording"] == "as asked"].to_dict("records")
    with torch.no_grad():
        given = torch.tensor([written(tokenizer, fact.text)])
        shares = hf(given).logits[0, -1].double().softmax(-1)
    assert row["familiarity"] == pytest.approx(
        float(shares[list(row["token_ids"])].sum()), abs=1e-6
    )


def test_a_model_that_does_not_think_is_refused(model, prompts):
    with pytest.raises(interp.UserError):
        interp.thoughts(model, prompts)
