"""Organisms that the command `interp train` makes, as it makes any other model."""

from pathlib import Path

from transformers import PreTrainedModel

from interp.models.load import load_model
from interp.models.loading import Loading
from interp.models.organisms import PREFIX
from interp.training.run import Training
from interp.training.spec import CheckpointOptions, TrainSpec
from interp_experiments.organisms.recipes import TheoryRecipe, TunedRecipe
from interp_experiments.robustlr.learning import RobustLRTraining
from interp_experiments.rulebench.learning import RuleFollowing


def train_by_command(
    recipe: TunedRecipe | TheoryRecipe, folder: Path, *, device: str
) -> PreTrainedModel:
    """The trained model in fp32, which `folder` holds too; rerun to resume."""
    if isinstance(recipe, TheoryRecipe):
        spec, begun = _theories(recipe), recipe.configuration
    else:
        spec, begun = _rules(recipe), f"{PREFIX}{recipe.base}"
    Training(spec, begun, Loading(device=device)).run(CheckpointOptions(out=folder))
    return load_model(str(folder), device=device, dtype="float32").hf


def _rules(recipe: TunedRecipe) -> TrainSpec:
    return RuleFollowing(
        questions=recipe.questions,
        held_out=recipe.held_out,
        epochs=1,
        batch=recipe.prompts_per_step,
        learning_rate=recipe.learning_rate,
        noise=recipe.noise,
        seed=recipe.seed,
    )


def _theories(recipe: TheoryRecipe) -> TrainSpec:
    return RobustLRTraining(
        from_scratch=True,
        distractors=recipe.distractors,
        theories=recipe.theories,
        held_out=recipe.held_out,
        epochs=recipe.epochs,
        curriculum=0.5,
        warmup=recipe.warm_up,
        batch=recipe.prompts_per_step,
        learning_rate=recipe.learning_rate,
        seed=recipe.seed,
    )
