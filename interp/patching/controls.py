"""Controls: the base prompt about other entities, with the same correct answer.

Replacing one mention of an entity leaves a prompt whose parts disagree, and a model may react to
that alone. Activations of a control leave the same disagreement, but speak for no other answer.
"""

from interp.errors import UserError
from interp.models.model import Model
from interp.prompts.mixing import donors_of, mixed
from interp.prompts.prompt import Prompt
from interp.reading.tokens import TokenizedPrompt, tokenize


def control_of(model: Model, prompt: Prompt) -> tuple[str, TokenizedPrompt]:
    """The name of the first donor of the prompt's template, and the prompt about its entities.

    Raises:
        UserError: a prompt without such a donor.
    """
    donors = donors_of(prompt, "instance")
    if not donors:
        raise UserError(
            f"prompt {prompt.id} has no donor from another instance to make a control of; leave it "
            "out, or patch without controls"
        )
    (control,) = tokenize(model, [mixed(prompt, donors[0])])
    return donors[0].name, control
