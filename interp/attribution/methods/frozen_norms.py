"""Input x gradient with the denominators of all norms held constant.

A norm divides by the length of what it reads, so that its own gradient takes out what points along
it: much of a token's part in the answer. Ali et al. (2022) hold the denominators constant.
"""

from interp.attribution.methods.input_x_gradient import InputXGradient
from interp.models.backward_rules import FROZEN_NORMS, check_rules
from interp.models.model import Model


class FrozenNorms(InputXGradient):
    """Embedding . gradient through norms whose denominators are constants.

    Raises:
        UserError: the model's architecture is not understood.
    """

    rules = FROZEN_NORMS

    def __init__(self, model: Model) -> None:
        check_rules(model, self.rules)
