"""Rows of lenses: by hand, by finite differences, and beside TransformerLens."""

import pytest
import torch
from torch.autograd.functional import jacobian

from interp.errors import UserError
from interp.lenses.final import FinalNorm, unembedding_rows
from interp.lenses.rows import (
    EMBEDDING,
    FIRST,
    logit_rows,
    own_rows,
    read_streams,
    read_texts,
    stream_at,
)
from interp.lenses.store import fitted
from interp.models.sites import edited
from interp.reading.tokens import pad
from tests.support.other_kinds import classifier
from tests.support.other_models import other_model
from tests.support.tiny import CONFIGS, tiny_model

WORDS = (5, 9, 20)
TEXTS = ("It rained.", "We need flour.", "He sat on a mat.")


def final_by_stream(model, batch, layer):
    """The function from a layer's stream to the final stream, of a batch of one row."""
    last = len(model.layers) - 1
    streams = read_streams(model, batch, [layer])

    def final(stream):
        with edited((stream_at(model, layer), lambda unused: stream)):
            return read_streams(model, batch, [last])[last]

    return streams[layer].detach(), final


@pytest.mark.quick(1)
@pytest.mark.parametrize("kind", ["llama", "gemma2", "gpt2"])
def test_rows_are_the_unembedding_times_the_mean_of_whole_jacobians(kind):
    model = tiny_model(kind, dtype=torch.float64)
    unembedding = unembedding_rows(model, WORDS)
    for layer in (EMBEDDING, 0):
        means = []
        for text in read_texts(model, TEXTS):
            with model.measuring():
                stream, final = final_by_stream(model, pad(model, [text]), layer)
                whole = jacobian(final, stream)[0, :, :, 0]  # (later token, width, token, width)
            counted = range(FIRST, len(text) - 1)
            means.append(sum(whole[u, :, t] for t in counted for u in counted) / len(counted))
        expected = unembedding @ sum(means) / len(means)
        found = fitted(model, WORDS, [layer], TEXTS)[0]
        # RMS norms of transformers compute in float32.
        assert (found - expected).norm() < 1e-7 * expected.norm()


def test_the_batches_of_texts_do_not_matter_and_the_last_layer_is_the_unembedding(tmp_path):
    model = tiny_model("llama", dtype=torch.float64)
    texts = [*TEXTS, TEXTS[0], "It poured."]
    whole, one_by_one = (
        fitted(model, WORDS, [EMBEDDING, 0, 1], texts, folder=tmp_path / str(n), batch_tokens=n)
        for n in (None, 1)
    )
    assert torch.allclose(whole, one_by_one, atol=1e-12)
    assert torch.allclose(whole[-1], logit_rows(model, WORDS, [1])[0], atol=1e-12)


@pytest.mark.parametrize("kind", ["gpt_neox", "gpt2"])  # in float64 throughout
def test_own_rows_predict_the_effect_of_small_changes(kind):
    model = tiny_model(kind, dtype=torch.float64)
    prompts = read_texts(model, TEXTS)
    batch = pad(model, prompts)
    row, column = 1, batch.unpadded(1).start + 6
    own = own_rows(
        model, batch, WORDS, [EMBEDDING, 0], [(0, batch.token_ids.shape[1] - 1), (row, column)]
    )
    change = 1e-6 * torch.randn(32, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    unembedding = unembedding_rows(model, WORDS)
    for place, layer in enumerate((EMBEDDING, 0)):
        with torch.no_grad(), model.measuring():

            def final(sign, layer=layer):
                def edit(stream):
                    moved = stream.clone()
                    moved[row, column] += sign * change
                    return moved

                with edited((stream_at(model, layer), edit)):
                    return read_streams(model, batch, [1])[1][row, batch.unpadded(row)]

            effect = ((final(1) - final(-1)) / 2).sum(0) @ unembedding.T
        assert torch.allclose(effect, own[place, :, 1] @ change, rtol=1e-5, atol=1e-11)


def check_logits(model, tolerance):
    """The rows of the unembedding, times the last stream, are the logits."""
    batch, last = pad(model, read_texts(model, TEXTS)[:1]), len(model.layers) - 1
    with torch.no_grad(), model.measuring():
        final = read_streams(model, batch, [last])[last][0, -1]
        expected = model.hf(input_ids=batch.token_ids).logits[0, -1, list(WORDS)]
    found = unembedding_rows(model, WORDS) @ final / FinalNorm(model).scale(final)
    if cap := model.logit_soft_cap:
        found = cap * torch.tanh(found / cap)
    assert torch.allclose(found, expected, atol=tolerance)


@pytest.mark.parametrize("kind", CONFIGS)
def test_folded_rows_give_the_logits(kind):
    check_logits(tiny_model(kind, dtype=torch.float64), 1e-6)


def test_what_has_no_lens_is_refused():
    model = tiny_model("llama")
    with pytest.raises(UserError, match="no layer 2"):
        fitted(model, WORDS, [2], TEXTS)
    with pytest.raises(UserError, match="none of 1 texts"):
        fitted(model, WORDS, [0], ["Oh"])
    with pytest.raises(UserError, match="sequence classifier"):
        fitted(classifier("bert"), WORDS, [0], TEXTS)


@pytest.mark.parametrize("kind", ["llama", "gemma2"])
def test_rows_equal_those_of_transformer_lens(kind):
    analysis = pytest.importorskip("transformer_lens.tools.analysis")
    from interp.patching.transformer_lens import TransformerLensBackend

    model = tiny_model(kind)
    bridge = TransformerLensBackend(model)._bridge
    bridge.cfg.default_prepend_bos = False
    theirs = analysis.JacobianLens.fit(
        bridge, list(TEXTS), corpus="tests", skip_first_positions=FIRST, show_progress=False
    )
    words = range(40)  # more than the stream has dimensions, so their rows tell the whole matrix
    found = fitted(model, words, [0], TEXTS)[0]
    expected = unembedding_rows(model, words) @ theirs.jacobians[0]
    assert torch.allclose(found, expected, rtol=1e-5, atol=1e-5 * float(expected.abs().max()))
    whole = torch.linalg.lstsq(unembedding_rows(model, words), found).solution
    assert torch.allclose(whole, theirs.jacobians[0], atol=1e-5 * float(whole.abs().max()))


@pytest.mark.parametrize(
    "kind", ["olmo2", "gemma3_text", "granite", "cohere", "deepseek_v3", "gpt_oss"]
)
def test_other_families_have_lenses(kind):
    model = other_model(kind)
    last = len(model.layers) - 1
    found = fitted(model, WORDS, [EMBEDDING, last], TEXTS[:2])
    assert torch.allclose(found[1], unembedding_rows(model, WORDS), atol=1e-4)
    check_logits(model, 1e-3)
