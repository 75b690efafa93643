"""What tensor parallelism is refused for, and with which words.

What is right in several processes is compared with one in tests/runs/test_together.py.
"""

from functools import partial

import pytest
from transformers import GPT2Config, LlamaConfig

import interp
from interp.attribution.attributor import Attributor
from interp.attribution.registry import find_method, method_names
from interp.errors import UserError
from interp.jobs import Job
from interp.measurements.specs import (
    Activations,
    Attribute,
    Circuits,
    Edges,
    Evaluate,
    Lens,
    Patch,
    Reinitialized,
    Steer,
)
from interp.models.find import find_model
from interp.models.loading import Loading
from interp.models.names import ModelChoice
from interp.models.tensor_parallel import check_spread, numbers_of_processes
from interp.runs.plan import RunPlan
from interp.studies.study import find_study
from tests.models.conftest import configure, refused
from tests.support.prompts import some_prompts
from tests.support.tiny import make_tiny
from tests.support.tokenizers import byte_level

MODEL = "organism/llama-logic"
HEADS = {"num_attention_heads": 9, "num_key_value_heads": 3, "hidden_size": 576}


EXPECTED = {0: "$", 1: "; expected 3$", 2: "; expected 2 or 4$", 3: "; expected 2 or 4 or 8$"}


@pytest.mark.parametrize(
    ("config", "numbers"),
    [
        (LlamaConfig(**HEADS), [3]),
        (LlamaConfig(num_attention_heads=8, num_key_value_heads=4), [2, 4]),
        (LlamaConfig(num_attention_heads=16, num_key_value_heads=16), [2, 4, 8]),
        (LlamaConfig(num_attention_heads=5, num_key_value_heads=1, hidden_size=320), []),
        (GPT2Config(), []),
    ],
)
def test_heads_and_a_plan_decide_over_how_many_processes(config, numbers):
    assert numbers_of_processes(config) == numbers
    for ranks in range(2, 9):
        if ranks in numbers:
            check_spread("tiny", config, ranks)
        else:
            words = rf"tiny.*{ranks} processes{EXPECTED[len(numbers)]}"
            if not config.base_model_tp_plan:
                words = r"gpt2\b.*tiny.*tensor_parallel.*--device-map\b"
            with pytest.raises(UserError, match=words):
                check_spread("tiny", config, ranks)


@pytest.mark.parametrize(
    "option",
    [
        *({"device_map": "auto"}, {"quantization": "4bit"}, {"dequantize": True}),
        *({"base": "organism/llama-deep"}, {"device": "cuda:1"}, {"device": "mps"}),
        *({"tensor_parallel": number} for number in (0, -1, 65, 1.5, "two")),
    ],
)
def test_options_that_do_not_go_with_it(option):
    (name,) = option
    with pytest.raises(UserError, match=name):
        Loading(**{"tensor_parallel": 2, **option})
    Loading(**{**option, "tensor_parallel": 1})
    assert Loading(tensor_parallel=2).identity() == Loading().identity()


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        (Attribute(methods=("input_gradient", "attention")), "method attention"),
        (Attribute(methods=("attention_rollout",)), "method attention_rollout"),
        (Attribute(methods=("value_weighted_norm",)), "method value_weighted_norm"),
        (Reinitialized(methods=("input_gradient",)), "random weights"),
        *((Patch(sites=("resid_pre", site)), f"site {site}") for site in "qkvz"),
        (Patch(sites=("pattern",)), "site pattern"),
        (Patch(backend="nnsight"), "backend nnsight"),
        (Activations(sites=("z",)), "site z"),
        (Edges(), "edges"),
        (Circuits(), "edges"),
        (Lens(), "lens"),
        (Steer(), "direction"),
    ],
)
def test_what_reads_heads_is_refused_before_weights_are_loaded(spec, what, tmp_path, monkeypatch):
    monkeypatch.setattr(RunPlan, "model", None)
    job = Job(
        what=spec, models=(ModelChoice(place=MODEL, name=""),), loading=Loading(tensor_parallel=2)
    )
    with pytest.raises(UserError, match=f"{what}.* tensor_parallel 2"):
        job.plan(tmp_path / "run", prompts=some_prompts(1))
    assert not (tmp_path / "run").exists()


REFUSED = {
    **{
        method: partial(interp.attribute, methods=(method,))
        for method in ("attention", "attention_rollout", "value_weighted_norm")
    },
    **{site: partial(interp.patch, sites=(site,)) for site in ("z", "q", "k", "v", "pattern")},
    "edges": interp.edges,
    "circuits": interp.find_circuits,
    "folder": lambda model, prompts: interp.run(Evaluate(), models=model, prompts=prompts, out="x"),
}
"""Calls that need whole heads or weights, or a folder that one process writes."""


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_whole_heads_is_refused_for_a_model_in_memory(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("interp.models.model.is_sharded", lambda tensor: True)
    with pytest.raises(UserError, match="tp_plan"):
        REFUSED[name](make_tiny("llama", byte_level()), some_prompts(1))


def test_a_study_with_such_a_stage_is_refused(tmp_path):
    job = Job(
        what=find_study("faithfulness")(),
        models=(ModelChoice(place=MODEL, name=""),),
        prompts=interp.prompts.source.PromptSource(limit=1),
        loading=Loading(tensor_parallel=2),
    )
    with pytest.raises(UserError, match=r"stage.*tensor_parallel.*\b2\b"):
        job.plan(tmp_path / "run")


def test_the_registry_knows_which_methods_read_heads(monkeypatch):
    asked = []
    monkeypatch.setattr("interp.models.model.Model.check_whole", lambda _, what: asked.append(what))
    model = interp.load_model("organism/rules-base")
    for name in method_names():
        asked.clear()
        try:
            Attributor(model, methods=(name,), target="predicted", batch_tokens=None)
        except UserError:
            continue
        assert bool(asked) == find_method(name).reads_heads


def test_this_process_alone_cannot_hold_a_part(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    refused(r"tensor_parallel 2\b.*\b2 processes.*\b1\b.*torchrun", MODEL, tensor_parallel=2)
    with pytest.raises(UserError, match="torchrun"):
        interp.run(Evaluate(), models=MODEL, prompts=some_prompts(1), tensor_parallel=2)


def test_processes_need_names_and_not_loaded_models_or_prompts(tmp_path):
    given = {"tensor_parallel": 2, "out": tmp_path / "run"}
    with pytest.raises(UserError, match=r"tensor_parallel 2\b.*model's\b"):
        interp.run(Evaluate(), models=interp.load_model(MODEL), **given)
    with pytest.raises(UserError, match=r"tensor_parallel.*processes.*models"):
        interp.run(Evaluate(), models=MODEL, prompts=some_prompts(1), **given)
    assert not (tmp_path / "run").exists()


def test_stored_quantized_weights_are_refused(saved):
    eight = {"quant_method": "bitsandbytes", "load_in_8bit": True}
    configure(saved, quantization_config=eight)
    with pytest.raises(UserError, match=r"bitsandbytes 8bit\b.*tensor_parallel$"):
        find_model(str(saved), Loading(tensor_parallel=2))
