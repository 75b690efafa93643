"""Tune an organism by IRFT, with the code that tunes any other model."""

from pathlib import Path

from transformers import PreTrainedModel

from interp.models.load import load_model
from interp.models.loading import Loading
from interp.models.organisms import PREFIX
from interp.training.run import Training
from interp.training.spec import Keeping
from interp_experiments.organisms.recipes import TunedRecipe
from interp_experiments.rulebench.learning import RuleFollowing


def tune(recipe: TunedRecipe, folder: Path, *, device: str) -> PreTrainedModel:
    """The tuned model in fp32, which `folder` holds too; rerun to resume."""
    spec = RuleFollowing(
        questions=recipe.steps * recipe.prompts_per_step,
        held_out=recipe.held_out,
        epochs=1,
        batch=recipe.prompts_per_step,
        learning_rate=recipe.learning_rate,
        noise=recipe.noise,
        seed=recipe.seed,
    )
    Training(spec, f"{PREFIX}{recipe.base}", Loading(device=device)).run(Keeping(out=folder))
    return load_model(str(folder), device=device, dtype="float32").hf
