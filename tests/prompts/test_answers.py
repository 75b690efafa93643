import pytest
from hypothesis import given
from hypothesis import strategies as st

from interp.errors import UserError
from interp.prompts.answers import (
    AnswerOption,
    Choice,
    Completion,
    FreeText,
    Judgement,
    Label,
    Unanswered,
    mentions,
)
from interp_experiments.rulebreakers.instances import entity_pairs
from interp_experiments.rulebreakers.system import system
from tests.support.answers import NO, YES, yes_no
from tests.support.systems import numbers

UNPARSED = Judgement("unparsed", "", correct=False)

WORDS = st.text("abcdeXYZ", min_size=1, max_size=6)


FORMS = st.lists(WORDS, min_size=2, max_size=12, unique=True)


def drawn_choice(forms, data):
    count = data.draw(st.integers(2, len(forms)))
    options = tuple(AnswerOption(f"option {n}", tuple(forms[n::count])) for n in range(count))
    names = [option.name for option in options]
    contrast = data.draw(st.none() | st.permutations(names).map(lambda order: tuple(order[:2])))
    return Choice(options, gold=data.draw(st.sampled_from(names)), contrast=contrast)


@pytest.mark.slow
@given(forms=FORMS, data=st.data())
def test_a_choice_is_judged_by_the_longest_form_that_begins_the_text(forms, data):
    choice = drawn_choice(forms, data)
    option = data.draw(st.sampled_from(choice.options))
    form = data.draw(st.sampled_from(option.forms))
    before = data.draw(st.sampled_from(["", " ", '"', "**", "\n- "]))
    after = data.draw(st.sampled_from(["", ".", ", because abc", "** W"]))
    correct = option.name == choice.gold
    assert choice.judge(before + form + after) == Judgement("answered", option.name, correct)
    assert choice.judge("neither " + form) == UNPARSED
    assert choice.judge("") == UNPARSED
    if not any(known.startswith(form + "q") for o in choice.options for known in o.forms):
        assert choice.judge(form + "q") == UNPARSED


@given(forms=FORMS, data=st.data())
def test_records_of_choices_differ_where_the_choices_do(forms, data):
    choice = drawn_choice(forms, data)
    others = [
        Choice(choice.options, gold=name, contrast=choice.contrast)
        for name in (option.name for option in choice.options)
        if name != choice.gold
    ]
    others.append(Choice(choice.options[::-1], gold=choice.gold, contrast=choice.contrast))
    assert all(other.record() != choice.record() for other in others)


def test_a_question_with_two_answers_contrasts_them_whatever_is_correct():
    for gold, name in ((True, "Yes"), (False, "No")):
        choice = yes_no(gold=gold)
        assert (choice.gold, choice.contrast, choice.options) == (name, ("Yes", "No"), (YES, NO))


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: yes_no(gold="No"), r"gold.*'No'.*str.*True"),
        (lambda: yes_no(gold=1), r"gold.*1.*int.*True"),
        (lambda: yes_no(gold=None), r"gold.*None.*True"),
        (lambda: Choice.between("Yes", NO, gold=True), r"option.*'Yes'.*AnswerOption\("),
        (lambda: Choice((YES,), gold="Yes"), r"\b(options|classes)\b.*\('\w+',"),
        (lambda: Choice((YES, YES), gold="Yes"), r"\b(options|classes)\b.*\('\w+',"),
        (lambda: Choice([YES, NO], gold="Yes"), r"options.*list; .*tuple"),
        (lambda: Choice((YES, NO), gold="Maybe"), r"gold.*'Maybe'.*\bYes, No\b"),
        *(
            (lambda pair=pair: Choice((YES, NO), "No", pair), r"contrast.*'\w+'.*\bYes, No\b")
            for pair in (("Yes", "Yes"), ("Yes", "Maybe"), "No")
        ),
        (lambda: Choice((YES, AnswerOption("Sure", ("Yes",))), gold="Yes"), r"\bYes, Sure.*form"),
        *(
            (lambda forms=forms: AnswerOption("Yes", forms), "option 'Yes'")
            for forms in ("Yes", ["Yes"], ("Yes", ""), ("Yes", 1), None, ({},), ())
        ),
        (lambda: Label(("one",), gold="one"), r"classes.*\('one',\)"),
        (lambda: Label(("one", "one"), gold="one"), r"\b(options|classes)\b.*\('\w+',"),
        (lambda: Label("ab", gold="a"), r"classes.*'ab'.*str\b"),
        (lambda: Label(("one", "two"), gold="three"), r"'three'.*\bone, two\b"),
        (lambda: FreeText("12"), r"accepted answers.*'12'.*tuple"),
        (lambda: FreeText(()), r"accepted answers.*\(\).*tuple"),
        (lambda: FreeText(("12",), parse="whole"), r"parser.*'whole'.*Unanswered"),
        (lambda: Completion(()), r"names.*\(\).*tuple"),
        (lambda: Completion(("Sudan",), ("",)), r"excluded.*\(''"),
        (lambda: Completion(("Sudan", "the")), r"'the'.*letters"),
        (lambda: Completion(("...",)), r"'\.\.\.'.*letters"),
    ],
)
def test_what_could_not_be_counted_is_refused(make, message):
    with pytest.raises(UserError, match=message):
        make()


def test_a_class_that_is_written_out_is_the_whole_text():
    label = Label(("True", "False", "Unknown"), gold="Unknown")
    assert label.judge(" Unknown\n") == Judgement("answered", "Unknown", correct=True)
    assert label.judge("True") == Judgement("answered", "True", correct=False)
    assert label.judge("True, I think") == UNPARSED


def test_a_free_text_is_what_its_parser_finds():
    answer = numbers.prompts(seed=0, data=None)[0].answer
    assert answer.judge("So the answer is 7.") == Judgement("answered", "7", correct=True)
    assert answer.judge("So the answer is 8.") == Judgement("answered", "8", correct=False)
    assert answer.judge("It is hard to say.") == UNPARSED
    assert answer.judge("I cannot help with that.") == Judgement("refused", "", correct=False)
    assert FreeText(("a b",)).judge(" a b\n").correct
    assert FreeText(("a b",)).judge("  ") == UNPARSED


def test_a_completion_names_what_is_expected_and_nothing_that_holds_it():
    completion = Completion(("Sudan", "Republic of the Sudan"), excluded=("South Sudan",))
    assert completion.gold == "Sudan"
    assert completion.judge("in Sudan, I think") == Judgement("answered", "Sudan", correct=True)
    assert completion.judge("South Sudan") == UNPARSED
    assert [option.forms for option in completion.options] == [("Sudan",)]


def test_the_record_of_a_free_text_names_its_parser():
    def other(text: str) -> str | Unanswered:
        return text

    answer = FreeText(("7",), parse=other)
    assert answer.record() != FreeText(("7",)).record()
    assert "other" in str(answer.record())


FACTS = {prompt.factors["entity_b"]: prompt for prompt in system.facts(data=None)}


def named(city, completion):
    """The name by which a completion gives the answer of a fact."""
    prompt = FACTS[city]
    return mentions(completion, prompt.answer.expected, lookalikes=prompt.answer.excluded)


@pytest.mark.parametrize(
    ("city", "completion", "name"),
    [
        ("Harare", "Zimbabwe.", "Zimbabwe"),
        ("Harare", "Harare is in **Zimbabwe**", "Zimbabwe"),
        ("Harare", "the ZIMBABWE highlands", "Zimbabwe"),
        ("Harare", "Zimbabwe's north-east", "Zimbabwe"),
        ("Banjul", "Gambia", "The Gambia"),
        ("Banjul", "the Gambia, on the Gambia River", "The Gambia"),
        ("Nassau", "the Bahamas", "The Bahamas"),
        ("Washington, D.C.", "the U.S.", "US"),
        ("Washington, D.C.", "the United States.", "United States"),
        ("Washington, D.C.", "the U.S.A.!", "USA"),
        ("London", "the U.K.", "UK"),
        ("Beijing", "China", "China"),
        ("Beijing", "the People’s Republic of China", "People's Republic of China"),
        ("Amsterdam", "The Netherlands", "Netherlands"),
        ("Amsterdam", "Holland", "Holland"),
        ("Dili", "Timor-Leste", "Timor-Leste"),
        ("Dili", "Timor Leste", "Timor-Leste"),
        ("Yamoussoukro", "Cote d’Ivoire", "Côte d'Ivoire"),
        ("Ankara", "Turkiye", "Türkiye"),
        ("São Tomé", "Sao Tome & Principe", "São Tomé and Príncipe"),
        ("Castries", "St. Lucia", "Saint Lucia"),
        ("Kinshasa", "the Democratic Republic of Congo", "Democratic Republic of the Congo"),
        ("Brazzaville", "the Republic of Congo", "Republic of the Congo"),
        ("Conakry", "Guinea, south of Guinea-Bissau", "Guinea"),
        ("Bissau", "Guinea-Bissau", "Guinea-Bissau"),
        ("Niamey", "on the Niger River, in Niger", "Niger"),
        ("Seoul", "the Republic of Korea", "Republic of Korea"),
        ("Mexico City", "Mexico City is in Mexico", "Mexico"),
        ("goose", "waterfowl", "waterfowl"),
        ("goose", "large birds", "bird"),
        ("violin", "string instruments", "string instrument"),
        ("tuba", "brass instrument", "brass instrument"),
    ],
)
def test_names_are_found_however_they_are_written(city, completion, name):
    assert named(city, completion) == name


OTHER_NAMES = {
    "Conakry": ["Guinea-Bissau", "Guinea–Bissau", "Papua New Guinea", "Equatorial Guinea"],
    "Niamey": ["Nigeria", "the valley of the Niger River"],
    "Roseau": ["the Dominican Republic"],
    "Brazzaville": [
        "the Democratic Republic of the Congo",
        "the Democratic Republic of Congo",
        "Congo",
    ],
    "Kinshasa": ["the Republic of the Congo", "Congo"],
    "Khartoum": ["South Sudan"],
    "Juba": ["Sudan"],
    "Seoul": ["Korea", "North Korea", "the Democratic People's Republic of Korea"],
    "Pyongyang": ["the Republic of Korea", "Korea"],
    "Taipei": ["the People's Republic of China"],
    "Beijing": ["the Republic of China"],
    "Washington, D.C.": ["tell us more", "North America"],
    "Mexico City": ["Mexico City is in New Mexico"],
    "Guatemala City": ["Guatemala City is in Central America"],
    "Dublin": ["Northern Ireland"],
    "Harare": [""],
    "guitar": ["instrument"],
    "goose": ["cricket"],
}


@pytest.mark.parametrize(
    ("city", "completion"), [(city, own) for city in OTHER_NAMES for own in OTHER_NAMES[city]]
)
def test_other_names_are_not_taken_for_it(city, completion):
    assert named(city, completion) == ""


@pytest.mark.parametrize("city", FACTS)
def test_no_answer_is_taken_for_another(city):
    """Every name of every answer counts for that answer, and for no other."""
    for other in FACTS.values():
        same = other.factors["entity_a"] == FACTS[city].factors["entity_a"]
        for name in other.answer.expected:
            assert bool(named(city, f"{name}.")) == same


@given(st.sampled_from(entity_pairs()), st.text(alphabet=" .,;:!?*\n\"'(", max_size=5))
def test_punctuation_and_case_make_no_difference(pair, around):
    forms = (pair.entity_a,)
    for written in (pair.entity_a, pair.entity_a.upper(), pair.entity_a.lower()):
        assert mentions(f"{around} {written}{around}", forms) == pair.entity_a


@pytest.mark.parametrize(
    ("name", "same", "others"),
    [
        (
            "4",
            ["4.", "(4)", "$4", "=4", "4, or so"],
            ["-4", "−4", "4.5", "1/4", "½", "4,000", "4:30"],
        ),
        ("4000", ["4,000", "4000"], ["4,0000", "4.000"]),
        ("3.14", ["3.14", "about 3.14."], ["314", "3", "14"]),
        ("-5", ["-5", "−5."], ["5", "3-5"]),
        ("C++", ["C++", "C++."], ["C", "C#"]),
        ("C", ["C", "C."], ["C++", "C#"]),
        ("1914", ["1914", "1914-1918", "July 28, 1914."], ["19142", "1914.5"]),
    ],
)
def test_the_marks_of_a_number_or_name_count(name, same, others):
    assert [mentions(text, [name]) for text in same] == [name] * len(same)
    assert [mentions(text, [name]) for text in others] == [""] * len(others)


NAMED = {
    "Italy": ["Northern Italy"],
    "South Korea": ["South Korea"],
    "Germany": ["the new Germany"],
    "Kansas": ["Kansas City, Kansas"],
    "Africa": ["East Africa"],
    "England": ["South East England"],
    "France": ["the south of France", "near the center of France"],
    "Sweden": [
        "Sweden, which borders Norway",
        "Sweden is near Norway, not in it",
        "Is it in Sweden? It is in Sweden.",
        "Sweden?",
    ],
}
NOT_NAMED = {
    "Ireland": ["Belfast is in Northern Ireland.", "northern ireland"],
    "Korea": ["NORTH KOREA"],
    "Mexico": ["New Mexico", "the Gulf of Mexico"],
    "Helena": ["St. Helena"],
    "Virginia": ["West Virginia"],
    "Guinea": ["Papua New Guinea", "Guinea–Bissau"],
    "Kansas": ["Kansas City"],
    "Saxony": ["Saxony-Anhalt"],
    "Congo": ["the Democratic Republic of the Congo"],
    "France": ["It lies south of France"],
    "Sweden": [
        "Norway, which borders Sweden",
        "between Norway and Sweden",
        "near Sweden",
        "Sweden is not where it lies",
        "Sweden isn't right",
        "Sweden was clearly wrong",
        "Sweden? No, Norway",
        "Is it in Sweden? Yes.",
    ],
}


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        *((name, text, name) for name, texts in NAMED.items() for text in texts),
        *((name, text, "") for name, texts in NOT_NAMED.items() for text in texts),
    ],
)
def test_a_name_within_a_longer_one_or_of_a_neighbor_is_no_answer(name, text, found):
    assert mentions(text, [name]) == found


@pytest.mark.parametrize(
    "before", ["nicht", "nicht in", "kein", "не", "pas en", "a country outside", "ليست"]
)
def test_denials_in_other_languages_are_no_answer(before):
    assert mentions(f" {before} Chad", ["Chad"]) == ""
    assert mentions(f" {before} Mali. Chad", ["Chad"]) == "Chad"


@given(st.text(max_size=30))
def test_any_text_can_be_read(text):
    assert mentions(text, ["Chad"]) in ("", "Chad")
