import pytest
import torch

import interp
from interp.cli import main
from interp.errors import UserError
from interp.models.devices import check_placement
from interp.models.dtypes import canonical_dtype
from interp.models.organisms import DEFAULT

WITHOUT_GPU = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")


@pytest.mark.parametrize(
    ("device", "device_map", "message"),
    [
        ("meta", None, "device 'meta' cannot be used: it holds no numbers"),
        ("gpu", None, "device 'gpu' cannot be used: no such device; expected cpu"),
        ("", None, "device '' cannot be used"),
        pytest.param("cuda", None, "device 'cuda' cannot be used", marks=WITHOUT_GPU),
        pytest.param(None, "cuda", "device_map 'cuda' cannot be used", marks=WITHOUT_GPU),
        (None, "everywhere", "expected auto, balanced, balanced_low_0, sequential, or a device"),
        (None, "meta", "device_map 'meta' cannot be used"),
        ("cpu", "auto", "give one of them"),
    ],
)
def test_places_that_there_are_not(device, device_map, message):
    with pytest.raises(UserError, match=message) as error:
        check_placement(device, device_map)
    assert len(str(error.value)) < 300


@pytest.mark.parametrize("where", [("cpu", None), (None, None), (None, "auto"), (None, "cpu")])
def test_places_that_there_are(where):
    check_placement(*where)


def test_a_command_refuses_a_device_before_it_looks_for_models(capsys):
    assert main(["evaluate", "--device", "xpu", "--model", "./none"]) == 2
    assert "device 'xpu' cannot be used" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("short", "full"),
    [("bf16", "bfloat16"), ("fp16", "float16"), ("fp32", "float32"), ("auto", "auto")],
)
def test_number_types_have_short_names(short, full):
    assert canonical_dtype(short) == full


def test_a_model_loads_by_a_short_name():
    assert interp.load_model(DEFAULT, device="cpu", dtype="bf16").dtype == "bfloat16"
