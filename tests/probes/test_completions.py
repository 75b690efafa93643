import pytest

from interp.prompts.tokens import tokenize
from probes.completions import complete, completion_prompt, first_token_probabilities
from tests.support.tiny import tiny_model


@pytest.fixture(scope="module")
def messages():
    cities = [("Stockholm", "Sweden"), ("Washington, D.C.", "United States of America")]
    cities += [("Tunis", "Tunisia"), ("Kathmandu", "Nepal")]
    return [
        completion_prompt(city, f"Complete the sentence: {city} is in", country)
        for city, country in cities
    ]


def test_the_organism_completes_what_it_was_told(organism, messages):
    assert complete(organism, messages) == [
        "Sweden",
        "United States of America",
        "Tunisia",
        "Nepal",
    ]


def test_completions_do_not_depend_on_the_batch(organism, messages):
    together = complete(organism, messages)
    assert [complete(organism, [message])[0] for message in messages] == together


def test_familiarity_is_the_probability_of_the_first_token(organism, messages):
    import torch

    together = first_token_probabilities(organism, messages)
    for message, probability in zip(messages, together, strict=True):
        (tokenized,) = tokenize(organism, [message])
        with torch.no_grad():
            logits = organism.hf(torch.tensor([tokenized.token_ids])).logits[0, -1]
        (country,) = message.positive.forms
        first = organism.tokenizer(country, add_special_tokens=False)["input_ids"][0]
        assert probability == pytest.approx(float(logits.softmax(-1)[first]), rel=1e-4)


def test_random_models_can_be_asked_too(messages):
    probabilities = first_token_probabilities(tiny_model("gpt2"), messages)
    assert all(0 < probability < 1 for probability in probabilities)
