import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch

import interp
from interp.errors import UserError
from interp.measurements.activations.measure import Place, vectors_at
from interp.measuring.core import bind, collect
from interp.models.sites import locate
from interp.reading.tokens import pad, tokenize
from interp.runs.merge import merging
from interp.runs.run import Run
from interp_probes.specs import Residuals
from tests.support.other_kinds import classifier
from tests.support.tiny import CONFIGS, tiny_model

BOTH = Residuals(positions=("last_token", "premise2"))


def beside_transformers(model, prompts, **options):
    """Vectors of each prompt and position, and transformers' hidden states, (layer, size).

    Its last one is normed, and its prompts are not padded.
    """
    tables = collect(bind(BOTH, model, **options), prompts)
    vectors = tables["residuals"].set_index(["prompt_id", "position", "layer"])["vector"]
    for prompt in prompts:
        (tokenized,) = tokenize(model, [prompt])
        with torch.no_grad():
            output = model.hf(torch.tensor([tokenized.token_ids]), output_hidden_states=True)
        hidden = torch.stack(output.hidden_states)[:, 0]
        places = {"last_token": -1, "premise2": tokenized.segments["premise2"][1] - 1}
        for position, place in places.items():
            ours = np.stack([vectors[prompt.id, position, layer] for layer in range(3)])
            yield ours, hidden[:, place].numpy()


@pytest.mark.parametrize("kind", CONFIGS)
def test_vectors_are_the_hidden_states_of_transformers(kind, prompts):
    model = tiny_model(kind)
    assert len({len(prompt) for prompt in tokenize(model, prompts)}) > 1  # so batches are padded
    norm = model.hf.get_submodule(model.architecture.final_norm)
    for ours, theirs in beside_transformers(model, prompts, batch_tokens=600):
        np.testing.assert_allclose(ours[:-1], theirs[:-1], rtol=1e-3, atol=1e-4)
        with torch.no_grad():
            normed = norm(torch.tensor(ours[-1]))
        np.testing.assert_allclose(normed.numpy(), theirs[-1], rtol=1e-3, atol=1e-4)


def test_answers_are_those_of_scoring(organism, prompts):
    together = collect(bind(BOTH, organism), prompts)["answers"]
    pd.testing.assert_frame_equal(together, interp.evaluate(organism, prompts).to_frame())
    for tokenized in tokenize(organism, prompts[:4]):  # a segment is read at its last token
        end = tokenized.segments["premise2"][1]
        text = organism.tokenizer.decode(tokenized.token_ids[:end])
        assert text.endswith(tokenized.prompt.segment_text("premise2"))


def test_no_hook_is_left(organism, prompts):
    batch = pad(organism, tokenize(organism, prompts[:2]))
    locations = {("resid_post", 0): locate(organism, "resid_post", 0)}
    places = [[Place("last_token", (0,))]] * 2

    def hooks():
        """With those that transformers leaves where hidden states were asked for."""
        layers = [layer.module for layer in organism.layers]
        return [(dict(one._forward_hooks), dict(one._forward_pre_hooks)) for one in layers]

    before = hooks()
    with pytest.raises(RuntimeError), vectors_at(locations, batch, places):
        raise RuntimeError
    with pytest.raises(UserError):
        bind(Residuals(positions=["premise9"]), organism).measure_batch(batch)
    assert hooks() == before


def test_vectors_are_stored_as_lists_of_floats(tmp_path, organism, prompts):
    measurement = bind(Residuals(positions=["last_token"]), organism)
    run = Run.open(tmp_path, prompts, BOTH)
    run.measure(measurement)
    with merging(run.folder):
        pass
    stored = pq.read_table(tmp_path / "residuals.parquet").to_pandas()
    direct = collect(measurement, prompts)["residuals"]
    assert len(stored) == len(prompts) * (organism.hf.config.num_hidden_layers + 1)
    np.testing.assert_array_equal(np.stack(stored["vector"]), np.stack(direct["vector"]))


def test_unknown_positions_are_named(organism, prompts):
    with pytest.raises(UserError, match=r"position 'premise9'; .*last_token, premise1"):
        bind(Residuals(positions=["premise9"]), organism)(prompts[:1])
    with pytest.raises(UserError, match=r"position.*positions"):
        bind(Residuals(positions=[]), organism)


def test_a_classifiers_streams_are_those_of_transformers(prompts):
    """Its prompts are padded on the right."""
    model = classifier("bert", classes=("Yes", "No", "True", "False"))
    for ours, theirs in beside_transformers(model, prompts, batch_tokens=900):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)
