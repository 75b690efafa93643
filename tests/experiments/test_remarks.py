from interp_experiments.remarks import listed, organisms


def test_names_as_in_a_sentence():
    assert [listed(names) for names in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]


def test_organisms_are_told_from_other_models():
    assert organisms(["owner/model"]) == []
    (some,) = organisms(["owner/model", "organism/gemma2"])
    assert some.startswith("Organisms: organism/gemma2. They are small models trained for this")
    (every,) = organisms(["organism/gemma2", "organism/mistral"])
    assert every.startswith("All models here are organisms. They are small models")
