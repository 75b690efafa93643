import interp
from interp.prompts.mixing import donors_of, mixed, with_donors


def test_donors_are_the_same_form_about_other_events():
    prompts = interp.load_prompts("logical-forms", limit=24)
    for number, prompt in zip(prompts.numbers, with_donors(prompts, count=4), strict=True):
        donors = donors_of(prompt, "instance")
        assert len({donor.name for donor in donors}) == 4
        for donor in donors:
            assert tuple(donor.segments) == ("premise1", "premise2", "conclusion")
            # All of a donor's segments together are the prompt of the donor itself.
            interpretation = int(donor.name.removeprefix("LOGIC_")) - 1
            whole = prompts.build(interpretation * 24 + number % 24)
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


def test_forms_of_one_premise_have_donors_for_it():
    for prompt in with_donors(interp.load_prompts("logical-forms-introduction", limit=2), count=2):
        assert [tuple(donor.segments) for donor in prompt.donors] == [
            ("premise1", "conclusion")
        ] * 2
