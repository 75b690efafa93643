from interp.report.write import TERMS, glossary


def test_only_words_of_the_page_are_explained_and_those_of_the_study():
    table = glossary("The Paired Accuracy by side; sides aside.", {"mt": "modus tollens"})
    assert table["name"].tolist() == ["accuracy", "mt", "paired accuracy", "side"]
    assert table["meaning"].tolist()[1:3] == ["modus tollens", TERMS["paired accuracy"]]
    assert glossary("Nothing.", {}).empty


def test_no_meaning_refers_to_another_word_of_the_list():
    assert not [word for word, meaning in TERMS.items() if "the same" in meaning]


def test_a_part_of_a_word_is_not_the_word():
    assert "share" not in glossary("shared, unshared", {})["name"].tolist()
    assert "share" in glossary("The share, of all.", {})["name"].tolist()
    assert "ratio" not in glossary("a likelihood-ratio test", {})["name"].tolist()
