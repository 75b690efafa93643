"""What tensor parallelism is refused for before weights are loaded, and with which words."""

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
from tests.support.prompts import some_prompts
from tests.support.tiny import save

MODEL = "organism/llama-logic"
HEADS = {"num_attention_heads": 9, "num_key_value_heads": 3, "hidden_size": 576}


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
            with pytest.raises(UserError, match="tensor_parallel"):
                check_spread("tiny", config, ranks)


def test_the_message_names_heads_and_a_number_that_works():
    with pytest.raises(UserError, match=r"\b9 attention heads.*tiny.*2 processes.*3\b"):
        check_spread("tiny", LlamaConfig(**HEADS), 2)
    with pytest.raises(UserError, match=r"gpt2\b.*tiny.*tensor_parallel.*--device-map\b"):
        check_spread("tiny", GPT2Config(), 2)


@pytest.mark.parametrize(
    "option",
    [
        {"device_map": "auto"},
        {"quantization": "4bit"},
        {"dequantize": True},
        {"base": "organism/llama-deep"},
        {"device": "cuda:1"},
        {"device": "mps"},
    ],
)
def test_options_that_do_not_go_with_it(option):
    (name,) = option
    with pytest.raises(UserError, match=name):
        Loading(tensor_parallel=2, **option)
    Loading(tensor_parallel=1, **option)


@pytest.mark.parametrize("number", [0, -1, 65, 1.5, "two"])
def test_numbers_that_no_machine_has(number):
    with pytest.raises(UserError, match="tensor_parallel"):
        Loading(tensor_parallel=number)


def test_the_number_is_no_part_of_the_identity():
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
        what=spec,
        models=(ModelChoice(place=MODEL, name=""),),
        loading=Loading(tensor_parallel=2),
    )
    with pytest.raises(UserError, match=f"{what}.* tensor_parallel 2"):
        job.plan(tmp_path / "run", prompts=some_prompts(1))
    assert not (tmp_path / "run").exists()


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
    with pytest.raises(UserError, match=r"tensor_parallel 2\b.*\b2 processes.*\b1\b.*torchrun"):
        interp.load_model(MODEL, device="cpu", tensor_parallel=2)
    with pytest.raises(UserError, match="torchrun"):
        interp.run(Evaluate(), models=MODEL, prompts=some_prompts(1), tensor_parallel=2)


def test_processes_need_names_and_not_loaded_models_or_prompts(tmp_path):
    given = {"tensor_parallel": 2, "out": tmp_path / "run"}
    with pytest.raises(UserError, match=r"tensor_parallel 2\b.*model's\b"):
        interp.run(Evaluate(), models=interp.load_model(MODEL), **given)
    with pytest.raises(UserError, match=r"tensor_parallel.*processes.*models"):
        interp.run(Evaluate(), models=MODEL, prompts=some_prompts(1), **given)
    assert not (tmp_path / "run").exists()


def test_stored_quantized_weights_are_refused(tmp_path):
    model = interp.load_model("organism/rules-base")
    save(model, tmp_path)
    model.hf.config.quantization_config = {"quant_method": "bitsandbytes", "load_in_8bit": True}
    model.hf.config.save_pretrained(tmp_path)
    with pytest.raises(UserError, match=r"bitsandbytes 8bit\b.*tensor_parallel$"):
        find_model(str(tmp_path), Loading(tensor_parallel=2))
