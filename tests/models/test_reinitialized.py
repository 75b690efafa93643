import pytest
import torch

from interp.errors import UserError
from interp.models.load import reinitialized
from interp.models.model import Model
from tests.support.tiny import tiny_model


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_weights_are_drawn_anew_and_the_same_each_time(kind):
    model = tiny_model(kind)
    before = {name: own.clone() for name, own in model.hf.state_dict().items()}
    state = torch.random.get_rng_state()
    one, other = reinitialized(model), reinitialized(model)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert one.name == model.name
    assert not one.hf.training
    drawn = one.hf.state_dict()
    assert drawn.keys() == before.keys()
    assert all(torch.equal(drawn[name], own) for name, own in other.hf.state_dict().items())
    assert any(not torch.equal(drawn[name], own) for name, own in before.items())
    # The model itself is as it was.
    assert all(torch.equal(model.hf.state_dict()[name], own) for name, own in before.items())
    different = reinitialized(model, seed=1).hf.state_dict()
    assert any(not torch.equal(drawn[name], own) for name, own in different.items())


def test_quantized_weights_are_refused(monkeypatch):
    monkeypatch.setattr(Model, "quantization", property(lambda model: "8 bits"))
    with pytest.raises(UserError, match="leave the re-initialised model out by --no-reinit"):
        reinitialized(tiny_model("llama"))
