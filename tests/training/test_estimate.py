from collections.abc import Sequence

import pytest
import torch

from interp.training.lessons import estimate, read_lessons, steps_of, to_batch
from interp.training.run import SAMPLE, Training
from tests.support.training import CPU, Colors, question


@pytest.fixture(params=["small-encoder", "small-text-to-text", "small-decoder"])
def training(request):
    return Training(Colors(from_scratch=True, batch=5), request.param, CPU)


def test_steps_and_parameters_are_counted(training):
    found = training.estimate()
    assert (found.read, found.lessons, found.too_long, found.steps) == (48, 48, 0, 4 * 10)
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
    assert estimate(training.start.outline(), training.spec, training.lessons, 48).memory > 0


class Lazy(Sequence):
    """A large training set, each prompt of which is made when it is read."""

    def __init__(self, total):
        self.total, self.made = total, set()

    def __len__(self):
        return self.total

    def __getitem__(self, place):
        self.made.add(place)
        return question(place)


@pytest.mark.parametrize("curriculum", [None, 0.0])
def test_a_large_training_set_is_sampled(monkeypatch, curriculum):
    prompts, spec = Lazy(50_000), Colors(from_scratch=True, batch=7, curriculum=curriculum)
    monkeypatch.setattr(Colors, "prompts", lambda _spec, _split: prompts)
    monkeypatch.setattr("interp.training.start._READ", 50)
    found = Training(spec, "small-decoder", CPU).estimate()
    assert (found.read, found.lessons) == (SAMPLE, 50_000)
    assert len(prompts.made) <= SAMPLE + 50
    lengths = [1] * 50_000
    groups = list(map(str, range(50_000)))
    steps = steps_of(lengths, groups, batch=7, epochs=4, seed=0, curriculum=curriculum)
    assert found.steps == len(steps)


def test_prompts_that_are_too_long_are_scaled_up():
    spec = Colors(from_scratch=True, batch=8, epochs=3)
    model = Training(spec, "small-decoder", CPU).start.outline()
    read = read_lessons(model, spec, [question(number) for number in range(10)])
    found = estimate(model, spec, read._replace(too_long=10), 1000)
    assert (found.read, found.too_long, found.lessons) == (20, 500, 500)
    assert found.steps == 3 * 63
