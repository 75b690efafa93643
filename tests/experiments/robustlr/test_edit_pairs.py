"""A base beside each edit that changes its label, generated and read; and patched between."""

from collections import Counter

import pytest

import interp
from interp.errors import UserError
from interp.prompts.systems import load_prompts
from interp_experiments.robustlr.evaluation_sets import (
    EditPairMaker,
    GroupMaker,
    pairs_of,
    pairs_of_all,
)
from interp_experiments.robustlr.published import load_published
from interp_experiments.robustlr.sampling import Words
from interp_experiments.robustlr.system import edits, rows_of
from interp_experiments.robustlr.variants import CONTRAST_SETS
from tests.support.other_kinds import classifier
from tests.support.tiny import tiny_model



@pytest.mark.parametrize("name", CONTRAST_SETS)
def test_a_pair_is_a_base_and_an_edit_of_another_label(name):
    groups = GroupMaker(name, 0, REAL, distractors=False)
    maker = EditPairMaker(groups)
    in_group = len(maker) // len(groups)
    made = [maker.group(index) for index in range(2 * in_group)]
    wanted = [pair for place in range(2) for pair in pairs_of(groups.group(place))]
    assert made == wanted
    for index, (base, edit) in enumerate(made):
        assert base.label is base.base_label is not edit.label
        assert base.statement == edit.statement and base.theory != edit.theory
        assert base.theory_id == edit.theory_id == maker.theory_id(index)


def test_a_limit_takes_whole_pairs_of_every_set():
    prompts = load_prompts("robustlr-edits", limit=12)
    sides = Counter(prompt.side for prompt in prompts)
    assert sides == {"base": 12, "edited": 12}
    assert len({prompt.pair_id for prompt in prompts}) == 12
    assert {prompt.factors["set"] for prompt in prompts} == set(CONTRAST_SETS)


def test_groups_in_the_authors_columns_become_pairs(tmp_path):
    file = tmp_path / "neg_contrast.csv"
    groups = GroupMaker("N-CS", 0, REAL, distractors=False)
    frame = rows_of([groups]).iloc[:8]  # two groups of four
    frame.drop(columns="set").to_csv(file, index=False)
    prompts = edits.prompts(seed=0, data=str(file))
    assert [prompt.side for prompt in prompts] == ["base", "edited"] * 6
    assert len(pairs_of_all(load_published(str(file)))) == 12


def test_groups_without_another_label_are_refused(tmp_path):
    """The members of an equivalence set all have one label."""
    file = tmp_path / "contra_equiv.csv"
    frame = rows_of([GroupMaker("C-ES", 0, REAL, distractors=False)])
    frame.iloc[:2].drop(columns="set").to_csv(file, index=False)  # one group
    with pytest.raises(UserError, match=r"no group .* has an edit whose label differs"):
        edits.prompts(seed=0, data=str(file))


@pytest.mark.parametrize("kind", ["decoder", "encoder"])
def test_models_are_patched_between_base_and_edit(kind):
    prompts = [p for p in load_prompts("robustlr-edits", limit=3) if p.factors["set"] == "N-CS"]
    encoder = classifier("bert", classes=("True", "False", "Unknown"))
    model = tiny_model("llama") if kind == "decoder" else encoder
    patches = interp.patch(model, prompts, granularity="segment", layers=[0], sites=["resid_pre"])
    assert patches.patches["effect"].notna().any()
