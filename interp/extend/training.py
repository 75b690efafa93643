"""For training: tasks, fitting, adapters, and the folders and cards of packaged models."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interp.console import Progress as Progress
    from interp.models.adapters import WEIGHTS as WEIGHTS
    from interp.models.adapters import Base as Base
    from interp.models.adapters import low_rank as low_rank
    from interp.models.adapters import save_adapter as save_adapter
    from interp.models.checkpoint import header as header
    from interp.models.checkpoint import stored_tensors as stored_tensors
    from interp.models.find import find_named as find_named
    from interp.models.load import load_found as load_found
    from interp.models.loading import Loading as Loading
    from interp.models.names import absolute as absolute
    from interp.models.organisms import PREFIX as PREFIX
    from interp.models.organisms import organism_folder as organism_folder
    from interp.models.packaged import GRAFTS as GRAFTS
    from interp.report.cards import Rows as Rows
    from interp.report.cards import card as card
    from interp.report.cards import facts as facts
    from interp.report.cards import plain as plain
    from interp.report.cards import tables as tables
    from interp.training.fit import Loss as Loss
    from interp.training.fit import fit as fit
    from interp.training.folder import remove_checkpoints as remove_checkpoints
    from interp.training.run import Training as Training
    from interp.training.spec import CheckpointOptions as CheckpointOptions
    from interp.training.spec import Split as Split
else:
    from interp.surface import offered

    __all__, __getattr__, __dir__ = offered(__name__, __file__)
