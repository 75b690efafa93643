"""Effects of segments on whole answers, against plain passes over texts that are mixed by hand."""

import dataclasses

import numpy as np
import pytest
import torch

import interp
from interp.measurements.specs import Effects
from interp.prompts.answers import Choice
from interp.prompts.mixing import donors_of, with_donors
from tests.scoring.test_whole_answers import CITIES, plain_log_p
from tests.support.prompts import some_prompts
from tests.support.tiny import tiny_model

SEGMENTS = ["premise1", "premise2", "conclusion"]


def mixed_by_hand(prompt, donor, kept):
    text = prompt.text
    for name in sorted(donor.segments, key=lambda name: -prompt.segments[name][0]):
        start, end = prompt.segments[name]
        text = text if name in kept else text[:start] + donor.segments[name] + text[end:]
    return text


def value_by_hand(model, prompt, text):
    """The difference of two options' log-probabilities: one plain pass for each form."""
    alone = dataclasses.replace(prompt, text=text, segments={}, roles={}, donors=())
    own, other = (
        torch.tensor([plain_log_p(model, alone, form) for form in option.forms]).logsumexp(0)
        for option in prompt.answer.options
    )
    return float(own - other)


@pytest.mark.parametrize("answers", ["first", "whole"])
@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_effects_equal_brute_force(kind, answers):
    model = tiny_model(kind, dtype=torch.float64)
    answer = Choice(CITIES, "New York", ("New York", "New Jersey"))
    asked = some_prompts(1)
    prompts = dataclasses.replace(
        asked, build=lambda number: dataclasses.replace(asked.build(number), answer=answer)
    )
    result = interp.run(Effects(donors=1, answers=answers), models=model, prompts=prompts)
    values, effects = result.tables["coalition_values"], result.tables["segment_effects"]
    assert effects["whole"].all()
    for prompt in with_donors(prompts, count=1):
        for which in ("instance", "counterpart"):
            (donor,) = donors_of(prompt, which)
            game = []
            for coalition in range(8):
                kept = [name for bit, name in enumerate(SEGMENTS) if coalition >> bit & 1]
                text = mixed_by_hand(prompt, donor, kept)
                game.append(value_by_hand(model, prompt, text))
            sign = 1 if game[-1] > 0 else -1
            rows = values[(values.prompt_id == prompt.id) & (values.donor_kind == which)]
            assert {tuple(names) for names in rows["segments"]} == {tuple(SEGMENTS)}
            found = np.stack(list(rows["values"]))[:, 0]
            np.testing.assert_allclose(found, sign * np.array(game), atol=1e-5)
            own = effects[(effects.prompt_id == prompt.id) & (effects.donor_kind == which)]
            own = own[own["other_segment"].isna()].set_index("segment")
            for bit, name in enumerate(SEGMENTS):
                left = sign * (game[7] - game[7 ^ 1 << bit])
                assert own.loc[name, "leave_one_out"] == pytest.approx(left, abs=1e-5)
