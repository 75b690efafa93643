"""What the calls for notebooks refuse, before anything is measured."""

import inspect
import re
from dataclasses import replace
from pathlib import Path

import pytest
import transformers

import interp
from interp.choices import SITES
from interp.measuring.spec import spec_named
from interp.models.loading import Loading
from interp.models.organisms import DEFAULT
from interp.plugins import MEASUREMENTS, plugins
from interp.prompts.own.pairs import EXAMPLE
from interp.prompts.source import PromptSource
from interp.runs.options import ComputeOptions, ExecutionOptions
from interp_probes.api import probe_familiarity, probe_knowledge, probe_linear

pytestmark = pytest.mark.usefixtures("unchecked_types")


@pytest.fixture
def pair(prompts):
    return list(prompts[:1]) + [p for p in prompts[1:] if p.pair_id == prompts[0].pair_id]


CALLS = [
    interp.evaluate,
    interp.soft_score,
    interp.attribute,
    interp.patch,
    interp.steer,
    interp.edges,
    interp.effects,
    interp.generate,
    interp.activations,
    interp.lens,
    probe_linear,
    probe_familiarity,
    probe_knowledge,
]
"""The call of each measurement."""

WITHOUT_CALLS = {"attribute-reinitialized", "given", "stored"}
"""Measurements that nobody makes by themselves, and what other tools stored."""


def test_the_help_of_the_package_shows_ten_names_and_then_where_a_model_can_be_read():
    _, _, first, _, tree = interp.__doc__.split("\n\n")
    named = re.findall(r"(?m)^    (\w+) ", first)
    assert len(named) == 10 and set(named) <= set(interp.__all__)
    read = {call.__name__ for call in CALLS if hasattr(interp, call.__name__)}
    assert {*SITES, *read, "thoughts", "find_circuits"} <= set(re.findall(r"\w+", tree))


def test_every_measurement_has_a_call_with_its_options_types_and_an_example_that_runs():
    calls = {call.__name__.replace("_", "-"): call for call in [*CALLS, interp.thoughts]}
    calls["circuits"] = interp.find_circuits
    assert set(calls) | WITHOUT_CALLS == set(plugins(MEASUREMENTS))
    page = (Path(__file__).parents[1] / "docs" / "api.md").read_text(encoding="utf-8")
    pages = "".join(map(Path.read_text, (Path(__file__).parents[1] / "docs").glob("*.md")))
    examples = "".join(re.findall(r"(?s)```python\n(.*?)```", pages))  # tests/test_code_blocks.py
    for name, call in calls.items():
        options = spec_named(name).model_fields
        shown = inspect.signature(call).parameters
        assert {"model", "prompts", "batch_tokens", *options} <= set(shown)
        assert all(own.annotation is not inspect.Parameter.empty for own in shown.values())
        assert all(f"    {option}: " in call.__doc__ for option in options)
        assert re.search(rf"\b{call.__name__}\(model, ", examples), call.__name__
        assert f"autofunction:: {call.__module__}.{call.__name__}" in page.replace(
            ":: interp.", ":: interp.api."
        ).replace("interp.api.api.", "interp.api.")


@pytest.mark.parametrize("call", CALLS)
def test_a_model_and_a_list_of_prompts_with_ids_of_their_own_are_expected(call, organism, pair):
    with pytest.raises(interp.UserError, match=r"model.*'organism/x'.*str.*load_model"):
        call("organism/x", pair)
    for wrong in ("text", pair[0], iter(pair), None, {"1": pair[0]}):
        with pytest.raises(interp.UserError, match=r"^prompts.*; .*list.*interp\.load_prompts"):
            call(organism, wrong)
    with pytest.raises(interp.UserError, match=r"prompts\[1\].*'text'.*str.*Prompt"):
        call(organism, [pair[0], "text"])
    with pytest.raises(interp.UserError, match="prompts; "):
        call(organism, [])
    with pytest.raises(interp.UserError, match=rf"prompts\[2\] .*'{pair[0].id}'"):
        call(organism, [*pair, pair[0]])


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"factors": {"text": "x"}}, r"factor 'text'.*column"),
        ({"factors": {"weight": "7"}}, r"factor 'weight'.*column"),
        ({"factors": {"premise1_start": "7"}}, r"factor premise1_start.*column"),
        ({"factors": None}, r"factors.*None.*; .*texts"),
        ({"factors": {"depth": 3}}, r"factors.*3.*; .*texts"),
        ({"segments": {3: (0, 5)}}, r"segments.*3: \(0, 5\).*; .*name"),
        ({"messages": "x"}, r"messages.*'x'.*str; .*Messages"),
        ({"side": "model"}, r"side.*'model'"),
    ],
)
def test_prompts_whose_table_would_be_wrong_are_refused(organism, pair, changes, told):
    with pytest.raises(interp.UserError, match=told):
        interp.evaluate(organism, [replace(prompt, **changes) for prompt in pair])


def test_a_budget_is_a_whole_number(organism, pair):
    for wrong in ("x", 1.5):
        with pytest.raises(interp.UserError, match=rf"budget is {wrong!r}"):
            interp.evaluate(organism, pair, batch_tokens=wrong)


WHAT = r"measurement.*study.*interp\.measurement\('attribute'\)"


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: evaluated(None, 3), r"models.*3.*int\b.*'organism/llama-.*interp\.load_model"),
        (lambda: evaluated(None, "a", 3), r"models.*\b3\b.*interp\.load_model"),
        (lambda: evaluated(None), r"models.*; .*model$"),
        (lambda: interp.run("attribute", models=DEFAULT), WHAT),
        (lambda: interp.run(interp.Attribute, models=DEFAULT), WHAT),
        (lambda: interp.run(3, models=DEFAULT), WHAT),
        (lambda: interp.load_model(3), r"model.*\b3\b.*\bint; .*'organism/llama-shallow'"),
        (lambda: interp.load_prompts(3), r"system.*3.*int\b"),
        (lambda: interp.load_prompts(limit="x"), r"limit.*'x'.*str\b.*interp\.load_prompts"),
        (lambda: interp.load_prompts(seed="x"), r"seed.*'x'.*str\b.*interp\.load_prompts"),
        (lambda: interp.load_prompts(data=3), r"data.*3.*int\b.*interp\.load_prompts"),
        (lambda: interp.read_pairs(3), r"table.*int\b.*pandas\.DataFrame"),
        (lambda: interp.read_pairs("pairs.csv", templates=3), r"templates.*3.*int\b"),
        (lambda: interp.read_pairs("pairs.csv", templates=[3]), r"templates.*\[3\].*list"),
        (lambda: interp.compare(3, 4), r"log.*3.*int\b.*folder"),
        (lambda: interp.with_thoughts([], {}), r"list and .*dict; .*interp\.load_model"),
        (lambda: interp.read_pairs(EXAMPLE, limit=1.5), r"limit.*1\.5; .*whole number"),
        (lambda: interp.Messages(demonstrations=[("a", "b")]), r"'b'.*tuple; .*Demonstration"),
        (lambda: interp.measurement(3), r"measurement.*\b3\b.*\bint"),
        (lambda: interp.study(None), r"study.*None.*NoneType"),
        (
            lambda: interp.train("irft", model="organism/rules-base"),
            r"'irft'.*'organism/rules-base'.*find_training\('irft'\)",
        ),
    ],
)
def test_wrong_types_are_named(call, told):
    with pytest.raises(interp.UserError, match=told):
        call()


def test_a_prompt_that_failed_is_not_averaged_as_zero(organism, prompts, tmp_path):
    """A prompt too long to read, in a pair that the model answers right."""
    scores = interp.evaluate(organism, prompts)
    right = scores.prompts.merge(scores.answers, on="prompt_id").groupby("pair_id")["correct"].all()
    pair = right.index[right][0]
    first = next(prompt for prompt in prompts if prompt.pair_id == pair)
    long = replace(first, text=first.text + " and" * 5000)
    given = [long if prompt.id == first.id else prompt for prompt in prompts]
    found = interp.run(interp.Evaluate(), models=organism, prompts=given, out=tmp_path / "run")
    answers = found.answers.set_index("prompt_id")
    assert "tokens" in answers.loc[first.id, "error"]
    assert answers["correct"].isna().sum() == 1
    without = [prompt for prompt in prompts if prompt.pair_id != pair]
    expected = interp.evaluate(organism, without).summary()
    assert found.summary()["paired_accuracy"].tolist() == expected["paired_accuracy"].tolist()
    assert found.summary()["prompts"].tolist() == [len(prompts) - 1]


def evaluated(pair, *models, **options):
    return interp.run(interp.Evaluate(), models=models, prompts=pair, **options)


@pytest.mark.parametrize("folder", [None, "run"])
def test_two_models_of_one_name_are_refused(organism, pair, tmp_path, folder):
    out = {} if folder is None else {"out": tmp_path / folder}
    other = replace(organism, hf=organism.hf)
    for models in [(organism, other), (DEFAULT, DEFAULT), (organism, DEFAULT)]:
        with pytest.raises(interp.UserError, match=r"organism/llama-shallow.*NAME=PATH"):
            evaluated(pair, *models, **out)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("folder", [None, "run"])
def test_models_under_two_names_are_each_measured(organism, pair, tmp_path, folder):
    """Two precisions of one organism; each model's numbers are those of a call of its own."""
    half = interp.load_model(f"half={DEFAULT}", device="cpu", dtype="bfloat16")
    out = {} if folder is None else {"out": tmp_path / folder}
    answers = evaluated(pair, organism, half, **out).answers
    assert answers["model"].tolist() == [DEFAULT] * 2 + ["half"] * 2
    for model in (organism, half):
        alone = interp.evaluate(model, pair).answers["predicted_probability"].tolist()
        own = answers.loc[answers["model"] == model.name, "predicted_probability"]
        assert own.tolist() == alone


@pytest.mark.parametrize("name", ["", " ", "a\nb", "\x1b[31m", 3, "x" * 5000])
def test_a_model_has_a_printable_name(organism, name):
    with pytest.raises(interp.UserError, match=r"model.*; .*printable"):
        replace(organism, name=name)


@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        (interp.attribute, {"methods": 3}, r"methods.*3.*list"),
        (interp.attribute, {"methods": "attentive"}, r"method 'attentive'.*attention"),
        (interp.patch, {"sites": "resid"}, r"site 'resid'.*resid_pre, resid_mid"),
        (interp.patch, {"layers": 1}, r"layers.*1.*list"),
        (interp.patch, {"heads": "a-b"}, r"heads.*'a-b'.*\b0,2,5\b"),
    ],
)
def test_a_list_is_expected_where_several_may_be_chosen(call, arguments, message, organism, pair):
    with pytest.raises(interp.UserError, match=message):
        call(organism, pair, **arguments)


def test_measurements_and_studies_by_name():
    assert interp.measurement("effects", donors=3).donors == 3
    assert interp.study("faithfulness", reinitialized=False).reinitialized is False
    with pytest.raises(interp.UserError, match=r"measurement 'effect'.*effects"):
        interp.measurement("effect")
    with pytest.raises(interp.UserError, match=r"study 'x'.*faithfulness, .*logical-forms"):
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
        with pytest.raises(interp.UserError, match=rf"prompts.*\b{names}; "):
            interp.run(interp.Evaluate(), models=organism, prompts=pair, **options)
    with pytest.raises(interp.UserError, match=r"study rulebreakers.*data, limit"):
        interp.run(interp.study("rulebreakers"), models=organism, prompts=pair)


def test_a_study_of_its_own_systems_takes_no_other(organism):
    with pytest.raises(
        interp.UserError, match=r"study rulebreakers.*system 'robustlr'.*faithfulness"
    ):
        interp.run(interp.study("rulebreakers"), models=organism, system="robustlr")


@pytest.mark.parametrize(
    ("given", "named", "way"),
    [
        (EXAMPLE, "a DataFrame", "interp.read_pairs(table)"),
        (EXAMPLE["premise1"], "a Series", "list(prompts)"),
        ("pairs.csv", "'pairs.csv', a str", "interp.read_pairs(table)"),
        ("It rains.", "'It rains.', a str", "interp.scan(model, text)"),
        (["It rains."], "prompts[0] is 'It rains.', a str", "interp.scan(model, text)"),
        (EXAMPLE.to_dict("records"), "a dict", "pandas.DataFrame(rows)"),
        (interp.read_pairs(EXAMPLE)[0], "a Prompt", "[prompt]"),
        (iter(interp.read_pairs(EXAMPLE)), "a map", "list(prompts)"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_wrong_type_is_named_with_the_way_to_prompts(given, named, way):
    for call in (
        lambda: interp.evaluate(interp.load_model(DEFAULT), given),
        lambda: interp.run(interp.Evaluate(), models=DEFAULT, prompts=given),
        lambda: interp.with_messages(given, answer_prefix="A:"),
        lambda: interp.with_messages(interp.read_pairs(EXAMPLE), shots=1, pool=given),
    ):
        with pytest.raises(interp.UserError) as refused:
            call()
        told = str(refused.value)
        assert named in told and way in told
        assert "\n" not in told and len(told) < 500


@pytest.mark.parametrize(
    ("option", "taker"),
    [
        ("answer_prefix", "interp.with_messages("),
        ("shots", "interp.with_messages("),
        ("limit", "interp.read_pairs"),
        ("template", "interp.load_prompts"),
        ("dtype", "interp.load_model("),
        ("fail_on_error", "interp.run("),
        ("out", "interp.run("),
    ],
)
@pytest.mark.parametrize("call", ["evaluate", "patch", "find_circuits"])
def test_an_option_of_another_call_names_that_call(call, option, taker, pair):
    with pytest.raises(interp.UserError) as refused:
        getattr(interp, call)(interp.load_model(DEFAULT), pair, **{option: 1})
    assert repr(option) in str(refused.value) and taker in str(refused.value)


def test_every_option_of_the_command_that_a_call_lacks_names_another_call():
    for kind in (PromptSource, Loading, ComputeOptions, ExecutionOptions):
        for option in kind.model_fields:
            if option == "batch_tokens":
                continue
            with pytest.raises(interp.UserError, match=rf"has no option '{option}'; interp\."):
                interp.evaluate(None, None, **{option: 1})


@pytest.mark.parametrize(
    "asked",
    [
        {"system": "mine.csv"},
        {"system": "folder/mine.parquet"},
        {"system": EXAMPLE},
        {"system": Path("mine.csv")},
        {"data": EXAMPLE},
        {"data": "OWN"},
        {"system": "OWN"},
    ],
    ids=str,
)
def test_a_table_in_place_of_a_system_names_what_reads_it(asked, tmp_path):
    own = tmp_path / "own.csv"
    EXAMPLE.to_csv(own, index=False)
    ((name, value),) = asked.items()
    value = str(own) if isinstance(value, str) and value == "OWN" else value
    with pytest.raises(interp.UserError, match=r"interp\.read_pairs\(table\)"):
        interp.load_prompts(**{name: value})


def test_a_result_in_memory_writes_its_page(pair, tmp_path):
    report = interp.evaluate(interp.load_model(DEFAULT), pair).report()
    page = interp.write_page(report, tmp_path / "new" / "page.html")
    assert page.read_text("utf-8").lower().startswith("<!doctype html")
    assert (tmp_path / "new" / "tables" / "accuracy_table.csv").is_file()
    mailed = tmp_path / "mailed.html"
    for _ in range(2):  # a page replaces a page
        assert interp.write_page(report, str(mailed), embed=True) == mailed
    EXAMPLE.to_csv(tmp_path / "mine.csv", index=False)
    for place in ("mine.csv", "new"):
        with pytest.raises(interp.UserError, match=place):
            interp.write_page(report, tmp_path / place)
    assert interp.read_pairs(tmp_path / "mine.csv")
