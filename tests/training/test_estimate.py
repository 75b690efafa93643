import pytest
import torch

from interp.models.loading import Loading
from interp.training.lessons import estimate, to_batch
from interp.training.run import Training
from tests.support.training import Colors


@pytest.fixture(params=["small-encoder", "small-text-to-text", "small-decoder"])
def training(request):
    return Training(Colors(from_scratch=True, batch=5), request.param, Loading(device="cpu"))


def test_steps_and_parameters_are_counted(training):
    found = training.estimate()
    assert (found.lessons, found.too_long, found.steps) == (48, 0, 4 * 10)
    hf = training.start.model().hf
    assert found.parameters == hf.num_parameters()
    assert found.weights == found.gradients == 4 * hf.num_parameters()
    optimizer = torch.optim.AdamW(hf.parameters())
    for parameter in hf.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    means = sum(s["exp_avg"].nbytes + s["exp_avg_sq"].nbytes for s in optimizer.state.values())
    assert found.optimizer == pytest.approx(means, rel=0.3)


def test_activations_are_about_those_of_a_real_forward_pass(training):
    model = training.start.model()
    batch = to_batch(model, [training.lessons.longest] * 5)
    own = {parameter.untyped_storage().data_ptr() for parameter in model.hf.parameters()}
    kept: dict[int, torch.Tensor] = {}

    def count(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage().data_ptr()
        if storage not in own:
            kept[storage] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
        loss = model.hf.train()(**batch).loss
    real = sum(tensor.untyped_storage().nbytes() for tensor in kept.values())
    assert loss.item() > 0
    assert training.estimate().activations == pytest.approx(real, rel=0.1)


def test_nothing_of_the_weights_is_needed(training, monkeypatch):
    monkeypatch.setattr(type(training.start), "model", None)
    assert estimate(training.start.outline(), training.spec, training.lessons).memory > 0
