"""One result of each measurement, of a packaged organism on a few pairs."""

import pytest

import interp
from interp.measurements.specs import Attribute, Edges, Effects, Evaluate, Generate, Lens, Patch
from interp.prompts.systems import load_facts
from interp_probes.specs import Familiarity, Knowledge

PAIRS = 3


@pytest.fixture(scope="package")
def measured():
    model = interp.load_model("organism/phi3-shallow", device="cpu")
    prompts = interp.load_prompts(limit=PAIRS)
    facts = load_facts("rulebreakers")[:4]
    specs = {
        "attribute": Attribute(keep_tokens=True),
        "edges": Edges(methods=("gradient",)),
        "effects": Effects(),
        "evaluate": Evaluate(),
        "generate": Generate(max_new_tokens=2),
        "lens": Lens(methods=("logit",)),
        "patch": Patch(),
        "tokens": Patch(granularity="position", layers=(0,)),
        "familiarity": Familiarity(),
        "knowledge": Knowledge(),
    }
    found = {
        name: interp.run(
            spec, models=model, prompts=facts if name in ("familiarity", "knowledge") else prompts
        )
        for name, spec in specs.items()
    }
    circuits = interp.find_circuits(model, prompts, effects=found["edges"])
    return {**found, "circuits": circuits}
