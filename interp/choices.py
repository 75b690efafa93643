"""The names that options, arguments and tables accept, each defined once.

Nothing heavy is imported here, so the command line rejects a wrong name immediately.
"""

from dataclasses import dataclass
from typing import Literal

TEMPLATE = "template"
"""The segment name of tokens outside all segments: of the chat template, or between segments."""

LAST = "last"
"""The role of the last token, where the answer is read."""

POOLED = "pooled"
"""The role of the first token of a classifier's prompt, where the answer is read."""

COUNTERPART, CONTROL = "counterpart", "control"
"""Sources of patched activations: the other prompt of the pair, or the base prompt's control."""

UNCHANGED = "the same in all donors"
"""Note about segments that no donor changes."""

ALL = "all"
"""The role of all tokens when a whole prompt is patched at once."""

ALL_PREMISES = "all premises"
"""What is left out if a prompt is read without all of its premises; no segment has this name."""

RESERVED = (TEMPLATE, LAST, POOLED, ALL)
"""Reserved names, which a prompt's segments and roles must not use."""

ORACLE, REVERSED, RANDOM, LENGTH, POSITION = ("oracle", "reversed", "random", "length", "position")
"""Scores with known faithfulness: controls for attribution methods."""

OWN_PAIRS = "pairs"
"""The system of a user's own pairs, which are read from a file."""

DEFAULT_SYSTEM = "rulebreakers"
"""The default system of commands and calls."""

AnswerReading = Literal["first", "whole"]
"""How options are read: by their first tokens where these differ, or as whole texts."""

Normalization = Literal["none", "token", "byte"]
"""The length by which log-probabilities of whole texts are divided before they are compared."""

VectorSite = Literal[
    "resid_pre", "resid_mid", "resid_post", "attn_out", "mlp_out", "z", "q", "k", "v"
]
"""The names of the `SITES` that have a vector for each token."""

SiteName = Literal[VectorSite, "pattern"]
"""The names of all `SITES`, as used in the literature."""


@dataclass(frozen=True, slots=True)
class Site:
    """An activation in a layer that can be read and patched."""

    name: str
    heads: Literal["query", "key-value"] | None = None
    """The kind of head that the site belongs to; None for sites of a whole layer."""
    read_by_later: bool = False
    """Whether a token in the last layer can still affect later tokens (in an encoder, all tokens)
    through this site. At all other sites of the last layer, it affects only its own residual
    stream.
    """
    acts_through: str | None = None
    """The site to which patches are written, if a site is read elsewhere. Two sites need this: no
    module outputs the attention weights, and the residual stream before the MLP also bypasses the
    MLP.
    """
    beside: str | None = None
    """The site to which the output of `acts_through` is added to obtain this site."""
    is_weights: bool = False
    """Whether the site holds attention weights, (head, query, key), which need eager attention."""

    @property
    def patched_at(self) -> str:
        """The site to which a patch is written."""
        return self.acts_through or self.name


SITES: dict[str, Site] = {
    site.name: site
    for site in (
        # The residual stream before the layer.
        Site("resid_pre", read_by_later=True),
        # The residual stream between the attention and the MLP.
        Site("resid_mid", acts_through="attn_out", beside="resid_pre"),
        # The residual stream after the layer.
        Site("resid_post"),
        # The contributions of the attention and of the MLP to the residual stream.
        Site("attn_out"),
        Site("mlp_out"),
        # The output of one head, before it is projected into the residual stream.
        Site("z", heads="query"),
        # Query, key and value of one head as projected, before any norm or rotation.
        Site("q", heads="query"),
        Site("k", heads="key-value", read_by_later=True),
        Site("v", heads="key-value", read_by_later=True),
        # The attention weights of one head.
        Site("pattern", heads="query", acts_through="z", is_weights=True),
    )
}
"""Sites by name."""

Granularity = Literal["role", "segment", "position", "all"]
"""Units of patching: the tokens of each role or segment, single tokens, or all tokens."""

Policy = Literal["last", "mean", "all"]
"""How to patch a span from one with a different number of tokens. `last`: the span's last token
takes the other span's last activation; the rest is unchanged. `mean`: every token takes the mean
activation. `all`: tokens must correspond one to one, so such pairs are rejected.
"""

EdgeEstimate = Literal["gradient", "integrated", "activations", "softmax", "gim"]
"""Estimates of edges (`interp.circuits.estimates.EdgeEstimator`)."""

EdgeMethod = Literal[EdgeEstimate, "exact"]
"""Methods for edges: the estimates, and `exact`, which runs the model once for each edge."""

PatchEstimate = Literal["gradient", "integrated"]
"""Estimates of patching (`interp.patching.estimates.Estimator`)."""

INTEGRATION_STEPS = 5
"""Default number of points of estimates that average gradients over points."""

DTYPES = ("auto", "float32", "bfloat16", "float16", "float64")
"""Values of --dtype; auto is float32 on a CPU and the checkpoint's own type elsewhere."""

DTYPE_ALIASES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16", "fp64": "float64"}
"""Short names of types."""

Quantization = Literal["8bit", "4bit"]
"""Quantization of weights: LLM.int8() (Dettmers et al. 2022), NF4 (Dettmers et al. 2023)."""
