"""What the calls for notebooks refuse, before anything is measured."""

import pytest
import transformers

import interp

pytestmark = pytest.mark.usefixtures("unchecked_types")


@pytest.fixture
def pair(prompts):
    return list(prompts[:1]) + [p for p in prompts[1:] if p.pair_id == prompts[0].pair_id]


CALLS = [
    interp.evaluate,
    interp.attribute,
    interp.patch,
    interp.effects,
    interp.generate,
    interp.activations,
]


@pytest.mark.parametrize("call", CALLS)
def test_a_model_and_a_list_of_prompts_are_expected(call, organism, pair):
    with pytest.raises(interp.UserError, match=r"model is 'organism/x', a str; .*load_model"):
        call("organism/x", pair)
    for wrong in ("text", pair[0], iter(pair), None, {"1": pair[0]}):
        with pytest.raises(interp.UserError, match="expected a list of prompts"):
            call(organism, wrong)
    with pytest.raises(interp.UserError, match=r"prompts\[1\] is 'text', a str; expected a Prompt"):
        call(organism, [pair[0], "text"])


@pytest.mark.parametrize("call", CALLS)
def test_ids_are_unique(call, organism, pair):
    with pytest.raises(interp.UserError, match=rf"prompts\[2\] has the id '{pair[0].id}'"):
        call(organism, [*pair, pair[0]])


@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        (interp.attribute, {"methods": 3}, "methods is 3: expected a list"),
        (interp.attribute, {"methods": "attentive"}, "unknown method 'attentive'"),
        (interp.patch, {"sites": "resid"}, "unknown site 'resid'"),
        (interp.patch, {"layers": 1}, "layers is 1: expected a list"),
        (interp.patch, {"heads": "a-b"}, "expected numbers such as 0,2,5"),
    ],
)
def test_a_list_is_expected_where_several_may_be_chosen(call, arguments, message, organism, pair):
    with pytest.raises(interp.UserError, match=message):
        call(organism, pair, **arguments)


@pytest.mark.parametrize("what", ["attribute", interp.Attribute, 3])
def test_what_is_run_is_a_measurement_or_a_study(what):
    expected = r"got .* to run; expected a measurement or a study, such as .*'attribute'"
    with pytest.raises(interp.UserError, match=expected):
        interp.run(what, models="organism/phi3-shallow")


def test_measurements_and_studies_by_name():
    assert interp.measurement("effects", donors=3).donors == 3
    assert interp.study("faithfulness", reinitialized=False).reinitialized is False
    with pytest.raises(interp.UserError, match="unknown measurement 'effect'; did you mean effe"):
        interp.measurement("effect")
    with pytest.raises(interp.UserError, match="unknown study 'x'"):
        interp.study("x")
    with pytest.raises(interp.UserError, match="donor"):
        interp.measurement("effects", donor=3)


def test_loading_draws_no_bars_where_nobody_watches(capfd):
    transformers.utils.logging.enable_progress_bar()
    interp.load_model("organism/llama-shallow", device="cpu")
    assert "Loading weights" not in capfd.readouterr().err


def test_prompts_and_what_says_which_to_load_are_not_both_taken(organism, pair):
    for options in ({"limit": 1}, {"system": "robustlr", "seed": 3}):
        names = ", ".join(sorted(options))
        with pytest.raises(interp.UserError, match=f"got both prompts and {names}"):
            interp.run(interp.Evaluate(), models=organism, prompts=pair, **options)
    with pytest.raises(interp.UserError, match="the study faithfulness loads its own"):
        interp.run(interp.study("faithfulness"), models=organism, prompts=pair)


def test_a_study_of_its_own_systems_takes_no_other(organism):
    with pytest.raises(interp.UserError, match="got the system 'robustlr'"):
        interp.run(interp.study("rulebreakers"), models=organism, system="robustlr")
