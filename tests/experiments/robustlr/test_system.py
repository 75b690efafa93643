from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest

import interp
from interp.errors import UserError
from interp.models.kinds import CLASSIFIER
from interp.prompts.prompt_set import PromptSet
from interp.prompts.systems import find_system, load_prompts
from interp.reading.outputs import fixed_answers
from interp_experiments.robustlr import evaluation_sets
from interp_experiments.robustlr.evaluation_sets import EVALUATION_SETS, evaluation_set
from interp_experiments.robustlr.language import Instance, Verdict
from interp_experiments.robustlr.learning import training_set
from interp_experiments.robustlr.prompts import OPTIONS, SHOWN, demonstrations, to_prompt
from interp_experiments.robustlr.published import literal_of, theory_of
from interp_experiments.robustlr.sampling import Words
from interp_experiments.robustlr.solver import verdict
from interp_experiments.robustlr.system import rows_of, system
from interp_experiments.robustlr.variants import CONTRAST_SETS
from tests.support.other_kinds import classifier, text_to_text

REAL = Words.of("real")


def test_a_prompt_by_hand():
    maker = evaluation_set("D-CS", 0, REAL, distractors=False)
    instance = maker.group(1)[2]
    prompt = to_prompt(instance)
    theory = instance.theory
    names = [f"fact{n + 1}" for n in range(len(theory.facts))]
    names += [f"rule{n + 1}" for n in range(len(theory.rules))]
    assert list(prompt.segments) == [*names, "statement", "question"]
    assert " ".join(map(prompt.segment_text, names)) == instance.context
    assert prompt.text == (
        f"{instance.context}\nStatement: {prompt.segment_text('statement')}\n"
        "Is the statement True, False or Unknown?"
    )
    assert prompt.answer.gold == "False"
    assert (prompt.side, prompt.factors["group"]) == ("disj2", "disj")


def test_the_proof_names_what_the_label_needs():
    """Without any one sentence of a lone proof the label is Unknown; what is no proof is spared."""
    context = (
        "Anne is calm. Dave is witty. If Anne is calm then Dave is the uncle of Anne. "
        "If Dave is witty then Anne is eager."
    )
    for statement, label, proof in (
        ("Dave is not the uncle of Anne", Verdict.FALSE, "fact1 rule1"),
        ("Dave is eager", Verdict.UNKNOWN, ""),
    ):
        asked = (literal_of(statement), label)
        instance = Instance.alone("t", "All", "v", theory_of(context), asked)
        assert to_prompt(instance).factors["proof"] == proof


def test_proofs_decide_among_facts_and_rules_of_generated_theories():
    prompts = load_prompts("robustlr-all", limit=20)
    assert prompts.decisive == ("proof", ("fact", "rule"))
    for prompt in prompts:
        proof = prompt.factors["proof"].split()
        assert bool(proof) == (prompt.answer.gold != "Unknown")
        kept = " ".join(name for name in map(prompt.segment_text, proof))
        if proof:  # several proofs of one theory give the same label together
            statement = literal_of(prompt.segment_text("statement")[:-1])
            assert verdict(theory_of(kept), statement).value == prompt.answer.gold


def test_each_answer_is_demonstrated_once_and_correctly():
    for context, statement, label in SHOWN:
        assert verdict(theory_of(context), literal_of(statement[:-1])) is label
    said = [shown.answer for shown in demonstrations().demonstrations]
    assert sorted(said) == ["False", "True", "Unknown"]


def test_a_limit_takes_whole_groups_of_every_set_and_makes_no_others(monkeypatch):
    prompts = load_prompts("robustlr", limit=24)
    bases = [prompt for prompt in prompts if prompt.side in {"base", "conj0", "disj0", "neg0"}]
    assert Counter(prompt.factors["set"] for prompt in bases) == dict.fromkeys(EVALUATION_SETS, 4)
    sizes = Counter(prompt.pair_id for prompt in prompts)
    for prompt in bases:
        versions = len(CONTRAST_SETS.get(prompt.factors["set"], ("base", "paraphrase")))
        assert sizes[prompt.pair_id] == versions
    made, sample = [], evaluation_sets.sample
    monkeypatch.setattr(
        evaluation_sets, "sample", lambda *args: made.append(args[0]) or sample(*args)
    )
    assert len(load_prompts("robustlr", limit=6)) == 24
    # Each group is drawn by random numbers of its own.
    assert len({id(rng) for rng in made}) < 20


def test_a_subset_is_that_of_prompts_that_were_all_made():
    whole = system.prompts(seed=3, data=None)
    some = whole[:2000]
    made = replace(PromptSet.of(list(some)), strata=whole.strata)
    chosen, expected = some.spread(20, 5), made.spread(20, 5)
    assert [p.id for p in chosen] == [p.id for p in expected]
    assert [p.id for p in chosen.spread(7, 1)] == [p.id for p in expected.spread(7, 1)]


@pytest.mark.parametrize("name", ["robustlr-not", "robustlr-and-not", "robustlr-or-not"])
def test_training_sets_ask_what_their_test_split_holds(name):
    prompts = load_prompts(name, limit=3)
    assert len(prompts) == 18
    assert all("-test-" in prompt.id for prompt in prompts)
    assert Counter(prompt.answer.gold for prompt in prompts) == dict.fromkeys(
        ("True", "False", "Unknown"), 6
    )


def test_full_sizes():
    names = ("", "-distractors", "-prompted", "-nonce", "-not", "-and-not", "-or-not", "-all")
    sizes = [len(find_system(f"robustlr{name}").prompts(seed=0, data=None)) for name in names]
    contrast = 2857 * 7 + 2857 * 7 + 5000 * 4
    assert sizes == [contrast + 60_000] * 4 + [9_996] * 4


def test_models_of_other_kinds_read_prompts_without_demonstrations():
    instance = evaluation_set("N-CS", 0, REAL, distractors=False).group(0)[0]
    asked = to_prompt(instance)
    scores = interp.evaluate(text_to_text("t5"), [asked])
    assert set(scores.option_probabilities["option"]) == {"True", "False", "Unknown"}
    with pytest.raises(UserError, match=r"tiny bert.*system prompt.*demonstrations"):
        interp.evaluate(classifier("bert"), [to_prompt(instance, demonstrations())])


@pytest.mark.usefixtures("unchecked_types")
def test_a_classifiers_classes_are_the_options():
    config = SimpleNamespace(id2label=dict(enumerate(("unknown", "TRUE", "False"))))
    hf = SimpleNamespace(config=config)
    model = SimpleNamespace(name="a classifier", kind=CLASSIFIER, hf=hf)
    found = {option.name: fixed_answers(model, option) for option in OPTIONS}
    assert found == {"True": (1,), "False": (2,), "Unknown": (0,)}


def test_rows_in_the_authors_columns():
    frame = rows_of([replace(evaluation_set(n, 0, REAL), number=2) for n in EVALUATION_SETS])
    assert len(frame) == 2 * (7 + 7 + 4 + 2 + 2 + 2)
    ids = frame["theory_id"].tolist()
    assert ids[:3] == ["C-CS-00000_conj0", "C-CS-00000_conj1", "C-CS-00000_conj2"]
    assert "C-CS-00001_conjneg3" in ids
    assert "N-CS-00001_neg3" in ids
    assert ids[-2:] == ["D2-ES-00001_@0", "D2-ES-00001_equiv_type3@0"]
    proved = frame[frame["label"] != 2]
    for row in proved.itertuples():
        words = row.context.split(". ")
        places = [int(place) for place in row.proof_deps.split(",")]
        theory = theory_of(". ".join(words[place].rstrip(".") for place in places) + ".")
        found = verdict(theory, literal_of(row.statement[:-1]))
        assert found == ("False", "True")[row.label]
        assert len(row.proofs.split()) == len(places)
    assert set(frame.loc[frame["label"] == 2, "proof_deps"]) == {"-1"}
    training = rows_of([replace(training_set("NOT", "dev", 0), number=1)])
    assert training["label"].tolist() == [1, 1, 0, 0, 2, 2]
    assert set(training["theory_id"]) == {""}


def test_unknown_data_are_refused_in_words(tmp_path):
    with pytest.raises(UserError, match=r"none\.csv'.*\.parquet"):
        system.prompts(seed=0, data=str(tmp_path / "none.csv"))
