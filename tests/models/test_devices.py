from inspect import signature

import pytest
import torch

import interp
from interp.cli import main
from interp.errors import UserError
from interp.models.loading import Loading
from interp.models.organisms import DEFAULT
from interp.models.weights import check_device

WITHOUT_GPU = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("meta", "device 'meta' cannot be used"),
        ("gpu", "device 'gpu' cannot be used: no such device; expected cpu"),
        ("", "device '' cannot be used"),
        pytest.param("cuda", "device 'cuda' cannot be used", marks=WITHOUT_GPU),
    ],
)
def test_devices_that_there_are_not(device, message):
    with pytest.raises(UserError, match=message) as error:
        check_device(device)
    assert len(str(error.value)) < 300


def test_a_device_that_there_is():
    check_device("cpu")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "meta"}, "unknown device 'meta'"),
        ({"device": ""}, "unknown device ''"),
        pytest.param({"device": "gpu"}, "device 'cuda' cannot be used", marks=WITHOUT_GPU),
        ({"device_map": "everywhere"}, "unknown device_map 'everywhere'; expected one of auto"),
        ({"device": "cpu", "device_map": "auto"}, "give one of them"),
        ({"quantization": "2bit"}, "unknown quantization '2bit'"),
        ({"dtype": "int8"}, "unknown dtype 'int8'"),
        ({"speed": 2}, "unknown option 'speed'; expected one of device"),
    ],
)
def test_a_model_is_not_loaded_in_ways_that_there_are_not(options, message):
    with pytest.raises(UserError, match=message) as error:
        interp.load_model(DEFAULT, **options)
    assert len(str(error.value)) < 300


def test_what_load_model_takes_is_documented():
    parameters = signature(interp.load_model).parameters
    assert list(parameters) == ["name", *Loading.model_fields]
    assert parameters["dtype"].default == "auto"
    arguments, _, errors = interp.load_model.__doc__.partition("\n\nRaises:")
    assert "name: hub name" in arguments
    assert "dtype: float32, bfloat16, float16, float64 (or fp32 ...)" in arguments
    assert "**options" not in arguments
    assert "UserError" in errors


def test_a_command_refuses_a_device_before_it_looks_for_models(capsys):
    assert main(["evaluate", "--device", "xpu", "--model", "./none"]) == 2
    assert "device 'xpu' cannot be used" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("short", "full"),
    [("bf16", "bfloat16"), ("fp16", "float16"), ("fp32", "float32"), ("auto", "auto")],
)
def test_number_types_have_short_names(short, full):
    assert Loading(dtype=short).dtype == full


def test_a_model_loads_by_a_short_name():
    assert interp.load_model(DEFAULT, device="cpu", dtype="bf16").dtype == "bfloat16"
