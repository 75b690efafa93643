"""The spacing of numbers of a coarse type at the size of a model's logits."""

import torch

from interp.measurements.specs import Evaluate
from interp.measuring.core import bind, collect
from interp.scoring.rounding import logit_spacing
from tests.support.prompts import some_prompts
from tests.support.tiny import tiny_model

PROMPTS = list(some_prompts(2))


def test_rounding_of_float32_is_too_fine_to_matter():
    assert logit_spacing(tiny_model("llama"), PROMPTS) is None


def test_the_spacing_is_the_distance_to_the_next_number_of_the_type():
    model = tiny_model("llama", dtype=torch.bfloat16)
    options = collect(bind(Evaluate(), model), PROMPTS)["option_probabilities"]
    assert len(options)
    spacing = logit_spacing(model, PROMPTS)
    assert spacing is not None
    # Some number of the type has a neighbor at exactly this distance.
    bits = torch.arange(0, 0x7F00, dtype=torch.int16).view(torch.bfloat16).double()
    assert spacing in bits.diff().tolist()
