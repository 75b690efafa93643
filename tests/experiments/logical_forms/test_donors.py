import pytest

import interp
from interp.prompts.mixing import donors_of, mixed, with_donors


@pytest.mark.parametrize(
    ("system", "forms", "segments"),
    [
        ("logical-forms", 24, ("premise1", "premise2", "conclusion")),
        ("logical-forms-introduction", 3, ("premise1", "conclusion")),
    ],
)
def test_donors_are_the_same_form_about_other_events(system, forms, segments):
    prompts = interp.load_prompts(system, limit=24)
    for number, prompt in zip(prompts.numbers, with_donors(prompts, count=4), strict=True):
        donors = donors_of(prompt, "instance")
        assert len({donor.name for donor in donors}) == 4
        for donor in donors:
            assert tuple(donor.segments) == segments
            # All of a donor's segments together are the prompt of the donor itself.
            interpretation = int(donor.name.removeprefix("LOGIC_")) - 1
            whole = prompts.build(interpretation * forms + number % forms)
            assert mixed(prompt, donor).text == whole.text
            for atom in "pq":
                event = f"{prompt.factors[f'name_{atom}']} is {prompt.factors[f'phrase_{atom}']}"
                assert event not in donor.segments["premise1"]


def test_a_theorem_and_its_fallacy_have_donors_of_the_same_events():
    pairs = {}
    for prompt in with_donors(interp.load_prompts("logical-forms", limit=6), count=4):
        names = [donor.name for donor in donors_of(prompt, "instance")]
        pairs.setdefault(prompt.pair_id, []).append(names)
    assert all(one == other for one, other in pairs.values())
