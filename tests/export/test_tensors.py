import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from safetensors import safe_open
from safetensors.numpy import load_file

from interp.export.activations import fill_tensors

numbers = st.floats(width=32, allow_nan=False)
shapes = st.tuples(st.integers(1, 6), st.integers(1, 5))
tensors = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8).filter(
        lambda name: name != "__metadata__"
    ),
    shapes.flatmap(lambda shape: arrays(np.float32, shape, elements=numbers)),
    max_size=4,
)


def by_rows(held):
    """Row by row, the tensors in turns."""
    longest = max((len(tensor) for tensor in held.values()), default=0)
    for row in range(longest):
        for name, tensor in held.items():
            if row < len(tensor):
                yield name, tensor[row : row + 1]


@given(held=tensors)
def test_what_is_written_row_by_row_is_what_safetensors_reads(held, tmp_path_factory):
    file = tmp_path_factory.mktemp("tensors") / "held.safetensors"
    fill_tensors(file, {n: t.shape for n, t in held.items()}, by_rows(held), about={"model": "é"})
    read = load_file(file)
    assert read.keys() == held.keys()
    for name, tensor in held.items():
        np.testing.assert_array_equal(read[name], tensor)
    with safe_open(file, "np") as stream:
        assert stream.metadata() == {"model": "é"}


@pytest.mark.parametrize(
    "parts",
    [
        [("a", np.zeros((1, 3), np.float32))],
        [("a", np.zeros((3, 3), np.float32))],
        [("a", np.zeros((2, 2), np.float32))],
    ],
)
def test_other_rows_than_the_shapes_say_are_refused(parts, tmp_path):
    with pytest.raises(ValueError, match="rows"):
        fill_tensors(tmp_path / "x", {"a": (2, 3)}, parts, about={})
