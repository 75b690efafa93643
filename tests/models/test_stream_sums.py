"""The sum that a stream is, found from numbers alone."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from interp.models.stream_sums import mixed_of, smallest_sum


def streams(count, seed=0, tokens=12, size=32):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(1, tokens, size, generator=generator) for _ in range(count)]


FACTORS = st.sampled_from([1.0, 0.22, -2.0, 3.5])


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    base=st.integers(0, 2),
    factor=FACTORS,
    scales=st.lists(FACTORS, min_size=1, max_size=2),
)
def test_the_terms_and_factors_of_a_sum_are_found(seed, base, factor, scales):
    bases, values = streams(3, seed), streams(5, seed + 1)
    target = factor * bases[base] + sum(
        factor * scale * value for scale, value in zip(scales, values, strict=False)
    )
    found = smallest_sum(target, bases, values, [1.0])
    assert found is not None
    assert found.plain
    assert found.base == base
    assert found.factor == pytest.approx(factor, rel=1e-4)
    parts = dict(found.parts)
    assert sorted(parts) == list(range(len(scales)))
    assert [parts[index] for index in range(len(scales))] == pytest.approx(
        [factor * scale for scale in scales], rel=1e-4
    )


def low(tensor):
    return tensor.to(torch.bfloat16)


BASE, VALUES = streams(1)[0], streams(3, 1)


@pytest.mark.parametrize(
    ("target", "values", "expected"),
    [
        (BASE + (0.22 + 1e-6) * VALUES[1], VALUES, ((1, 0.22),)),  # a known factor is exact
        (BASE + VALUES[0] + VALUES[1], [*VALUES, VALUES[0] + VALUES[1]], ((3, 1.0),)),  # fewest
        (torch.linspace(0.5, 2.0, 32) * BASE + VALUES[2], VALUES, ((2, 1.0),)),  # by channel
        (low(BASE) + low(VALUES[1]), [low(own) for own in VALUES], ((1, 1.0),)),  # rounding
    ],
    ids=["known", "fewest", "channels", "rounding"],
)
def test_the_sum_of_a_stream(target, values, expected, request):
    found = smallest_sum(target, [BASE.to(target.dtype)], values, [1.0, 0.22])
    assert found is not None
    assert (found.factor, found.parts) == (1.0, expected)
    assert found.plain == (request.node.callspec.id != "channels")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_is_no_sum_is_not_taken_for_one(dtype):
    (base,), values = streams(1), streams(4, 1)
    target = base + torch.tanh(values[0]) * values[1]
    arguments = [target.to(dtype), [base.to(dtype)], [value.to(dtype) for value in values]]
    assert smallest_sum(*arguments, [1.0]) is None
    assert smallest_sum(arguments[0], arguments[1], [], [1.0]) is None


def parallel(count, seed, streams=3):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(1, 12, streams, 32, generator=generator) for _ in range(count)]


def mix(base, value, seed):
    """Every stream with factors of its own for each token, from all streams and a value."""
    generator = torch.Generator().manual_seed(seed)
    mixing = torch.randn(1, 12, base.shape[2], base.shape[2], generator=generator)
    added = torch.randn(1, 12, base.shape[2], 1, generator=generator)
    return mixing @ base + added * value[:, :, None]


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), base=st.integers(0, 2), value=st.integers(0, 3))
def test_the_base_and_the_value_of_a_mix_are_found(seed, base, value):
    bases, values = parallel(3, seed), streams(4, seed + 1)
    target = mix(bases[base], values[value], seed + 2)
    assert mixed_of(target, bases, values) == (base, value)


def test_equal_streams_hide_no_value():
    # Behind the embeddings all streams are equal, so factors of their differences fit anything.
    (value, other), (embedding,) = streams(2, 1), streams(1)
    base = embedding[:, :, None].expand(-1, -1, 3, -1)
    middle = mix(base, value, 2)
    assert mixed_of(mix(middle, other, 3), [base, middle], [value, other]) == (1, 1)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_what_is_no_mix_is_not_taken_for_one(dtype):
    bases, (target,) = parallel(2, 0), parallel(1, 5)
    values = streams(3, 1)
    assert mixed_of(target.to(dtype), bases, values) is None
    two = mix(bases[0], values[0], 2) + mix(bases[0], values[1], 3)
    assert mixed_of(two.to(dtype), bases, values) is None
    few, value = torch.randn(1, 12, 3, 7, dtype=dtype), torch.randn(1, 12, 7, dtype=dtype)
    assert mixed_of(mix(few.float(), value.float(), 0).to(dtype), [few], [value]) is None
