import pytest

from benchmarks.thoughts import compare, texts_of, thinking_llama


def test_the_benchmark_of_thoughts_measures_both_ways():
    model = thinking_llama(64, 1)
    texts = texts_of(model, pairs=1)
    assert len(texts) > 200
    found = compare(model, texts[:120], repeats=1)
    assert found["largest difference, in logits"] == pytest.approx(0, abs=1e-4)
    read = [text.token_ids for text in texts[:120]]
    beginnings = {tokens[:end] for tokens in read for end in range(1, len(tokens) + 1)}
    assert found["bound by token counts"] == pytest.approx(sum(map(len, read)) / len(beginnings))
    assert found["bound by token counts"] > 1.5
