"""At which prompt lengths a model's rotary frequencies change."""

from interp.models.model import Model


def short_length(model: Model) -> int | None:
    """The longest prompt in tokens that is read with the short frequencies; None for any length.

    Long RoPE (Phi-3 128k) rotates every token of a longer pass by other frequencies, so that a
    pass must not mix prompts on both sides of this length, and must not read one in parts. Dynamic
    NTK scaling changes its frequencies only beyond the longest prompt that the model accepts.
    """
    parameters = getattr(model.hf.config.get_text_config(), "rope_parameters", None) or {}
    by_layer_type = [value for value in parameters.values() if isinstance(value, dict)]
    lengths = [
        part["original_max_position_embeddings"]
        for part in (parameters, *by_layer_type)
        if part.get("rope_type") == "longrope"
    ]
    return min(lengths, default=None)


def is_long(model: Model, tokens: int) -> bool:
    """Whether a prompt of so many tokens is read with other frequencies than short ones are."""
    length = short_length(model)
    return length is not None and tokens > length
