import pytest
import torch

from interp.models.unembedding import ExactLogits, agree, final_states, unembed
from tests.support.tiny import CONFIGS, tiny_model


@pytest.mark.parametrize(
    ("size", "error", "dtype", "expected"),
    [
        (5.0, 0.009, torch.float32, True),
        (5.0, 0.02, torch.float32, False),
        (100.0, 0.09, torch.float32, True),  # ten times the size, ten times the rounding
        (100.0, 0.2, torch.float32, False),
        (5.0, 0.2, torch.bfloat16, True),
        (5.0, 0.4, torch.bfloat16, False),
        (1.0, torch.nan, torch.float32, True),  # reported elsewhere
    ],
)
def test_logits_agree_up_to_the_rounding_of_their_type(size, error, dtype, expected):
    model = tiny_model("llama", dtype=dtype)
    theirs = torch.tensor([size, 0.0])
    assert agree(model, theirs + torch.tensor([0.0, error]), theirs) is expected
    assert agree(model, torch.zeros(0), torch.zeros(0))


@pytest.mark.parametrize("kind", CONFIGS)
def test_final_states_and_chosen_logits_are_the_models_own(kind):
    model = tiny_model(kind)
    ids = torch.arange(40, 52)[None]
    with torch.no_grad(), final_states(model) as states:
        logits = model.hf(input_ids=ids).logits
    assert agree(model, unembed(model, states[0][0]), logits[0])
    with torch.no_grad(), ExactLogits(model).of([7, 3]):
        chosen = model.hf(input_ids=ids).logits
    torch.testing.assert_close(chosen, logits[..., [7, 3]], rtol=0, atol=1e-4)
