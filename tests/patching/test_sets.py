"""Sets of cells that are patched at once, against plain hooks and the grid."""

import itertools
import random
from collections import defaultdict
from contextlib import ExitStack
from functools import partial

import pytest

import interp
from interp.errors import UserError
from interp.patching.cells import has_counterpart
from interp.patching.exact import Grid
from interp.patching.sets import PER_MILLE, set_sizes
from interp.reading.budget import CPU_BATCH_TOKENS, TokenBudget
from tests.support.hooks import hooked
from tests.support.pairs import EQUAL, UNEQUAL, cells, plain_metric, sites_of, some_pair
from tests.support.prompts import some_prompts
from tests.support.tiny import CONFIGS, tiny_model

TOLERANCE = 1e-5
"""Largest difference of a metric, in logits."""

MODULES = {
    "resid_pre": ("", "in"),
    "q": (".self_attn.q_proj", "out"),
    "k": (".self_attn.k_proj", "out"),
    "v": (".self_attn.v_proj", "out"),
    "z": (".self_attn.o_proj", "in"),
    "attn_out": (".self_attn.o_proj", "out"),
    "mlp_out": (".mlp", "out"),
}
"""Where sites are in a Llama and its like."""


def patch_sets(model, pair, sets, batch_tokens=CPU_BATCH_TOKENS):
    return Grid(model, budget=TokenBudget(batch_tokens)).patch_sets(pair, sets)


def patchable(model, pair, sites, granularity="role"):
    return [cell for cell in cells(model, pair, sites, granularity) if has_counterpart(pair, cell)]


def hooked_metric(model, prompt, answers, change):
    """The metric of a prompt whose activations pass through `change(site, layer, tensor)`."""
    with ExitStack() as stack:
        for (site, (path, end)), layer in itertools.product(MODULES.items(), range(2)):
            module = model.hf.get_submodule(f"model.layers.{layer}{path}")
            stack.enter_context(hooked(module, end, partial(change, site, layer)))
        return plain_metric(model, prompt.token_ids, answers)


def plainly(model, pair, chosen):
    """The metric under a set of cells, by one hook a site and layer on whole prompts."""
    kept, members = {}, defaultdict(list)
    for cell in chosen:
        members[cell.site, cell.layer].append(cell)

    def keep(site, layer, tensor):
        kept[site, layer] = tensor.clone()

    def put(site, layer, tensor):
        tensor, config = tensor.clone(), model.hf.config
        size = config.hidden_size // config.num_attention_heads
        for cell in members[site, layer]:
            head = (
                slice(None)
                if cell.head is None
                else slice(cell.head * size, (cell.head + 1) * size)
            )
            for position in cell.group.positions:
                for counterpart in pair.alignment.sources[position]:
                    tensor[0, position, head] = kept[site, layer][0, counterpart, head]
        return tensor

    hooked_metric(model, pair.source, pair.answers, keep)
    return hooked_metric(model, pair.base, pair.answers, put)


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
@pytest.mark.parametrize("number", [EQUAL, UNEQUAL])
def test_sets_over_sites_and_layers_equal_plain_hooks(kind, number):
    model = tiny_model(kind)
    pair = some_pair(model, number)
    chance = random.Random(5)
    every = patchable(model, pair, tuple(MODULES))
    sets = [chance.sample(every, size) for size in (2, 5, 20, 60, len(every))]
    sets += [patchable(model, pair, [site], "position") for site in MODULES]
    found = patch_sets(model, pair, sets)
    assert found == pytest.approx([plainly(model, pair, one) for one in sets], abs=TOLERANCE)
    base = plain_metric(model, pair.base.token_ids, pair.answers)
    assert min(abs(metric - base) for metric in found[2:5]) > 10 * TOLERANCE


@pytest.mark.quick(2)
@pytest.mark.parametrize("kind", CONFIGS)
def test_a_set_of_one_cell_is_the_cell(kind):
    model = tiny_model(kind)
    pair = some_pair(model, UNEQUAL)
    sites = [site for site in sites_of(model) if site != "pattern"]
    every = patchable(model, pair, sites)
    exact = Grid(model, budget=TokenBudget(CPU_BATCH_TOKENS)).patch(pair, every)
    found = patch_sets(model, pair, [[cell] for cell in every], batch_tokens=4096)
    assert found == pytest.approx(exact.cells, abs=TOLERANCE)


@pytest.mark.parametrize("kind", CONFIGS)
def test_all_embeddings_give_the_sources_metric_whatever_else_is_patched(kind):
    model = tiny_model(kind)
    pair = some_pair(model, EQUAL)
    source = plain_metric(model, pair.source.token_ids, pair.answers)
    first = cells(model, pair, ["resid_pre"], "position", layers=[0])
    others = [site for site in sites_of(model) if site != "pattern"]
    found = patch_sets(model, pair, [first, [*first, *cells(model, pair, others)]])
    assert found == pytest.approx([source, source], abs=TOLERANCE)


def test_the_middle_of_the_stream_is_the_sources_whatever_is_patched_below():
    """What resid_mid holds at every token of the last layer decides, whatever came before it."""
    model = tiny_model("llama")
    pair = some_pair(model, EQUAL)
    middle = cells(model, pair, ["resid_mid"], "position", layers=[1])
    below = cells(model, pair, ["attn_out", "mlp_out", "resid_pre", "resid_mid"])
    alone, together = patch_sets(model, pair, [middle, [*middle, *below[::3]]])
    source = plain_metric(model, pair.source.token_ids, pair.answers)
    assert (alone, together) == pytest.approx((source, source), abs=TOLERANCE)


def test_sets_that_change_nothing_have_the_metric_of_the_base():
    model = tiny_model("llama")
    pair = some_pair(model)
    before = [
        cell
        for cell in cells(model, pair, ["resid_pre"], "position")
        if cell.group.positions[0] < pair.shared
    ]
    base = plain_metric(model, pair.base.token_ids, pair.answers)
    assert patch_sets(model, pair, [[], before]) == pytest.approx([base, base], abs=TOLERANCE)


@pytest.mark.parametrize("count", [1, 7, 60, 5000])
def test_sizes_grow_to_all_cells(count):
    sizes = set_sizes(count)
    assert sizes[0] == max(1, count // 1000)
    assert sizes[-1] == count
    assert all(one < next_ for one, next_ in itertools.pairwise(sizes))
    assert len(sizes) <= len(PER_MILLE)


@pytest.mark.slow
def test_rankings_are_nested_and_end_in_the_same_set():
    model = tiny_model("llama")
    result = interp.patch(
        model, some_prompts(2), sites=["resid_pre", "z"], sets=True, estimate="gradient"
    )
    for _, rows in result.node_sets.groupby("pair_id"):
        ends = rows[rows["cells"] == rows["of_cells"]].set_index("ranking")["metric"]
        assert ends["gradient"] == pytest.approx(ends["random"], abs=TOLERANCE)
        assert set(rows["sites"]) == {"resid_pre,z"}
    again = interp.patch(model, some_prompts(3), sites=["resid_pre", "z"], sets=True)
    random_ones = [
        table[table["ranking"] == "random"].set_index(["pair_id", "cells"])["metric"]
        for table in (result.node_sets, again.node_sets)
    ]
    one, more = random_ones[0], random_ones[1].loc[random_ones[0].index]
    assert more.tolist() == pytest.approx(one.tolist(), abs=TOLERANCE)
    assert interp.patch(model, some_prompts(1)).node_sets is None


@pytest.mark.parametrize(
    "options", [{"sites": ["z", "pattern"]}, {"backend": "nnsight"}], ids=["pattern", "backend"]
)
def test_what_sets_cannot_do_is_refused(options):
    with pytest.raises(UserError, match=r"cells.*pattern; .*backend \w+\b.*sites"):
        interp.patch(tiny_model("llama"), some_prompts(1), sets=True, **options)
