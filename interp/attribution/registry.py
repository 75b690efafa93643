"""The attribution methods: their formulas, sources and implementations.

A method is one class in `interp.attribution.methods` and one entry here. Another package adds a
method by an entry point of the group `interp.methods` that refers to a `Method`. Nothing heavy is
imported here, so methods are listed and unknown names rejected quickly.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from interp.errors import UserError, unknown
from interp.plugins import METHODS, loaded, misfit, plugins


@dataclass(frozen=True, slots=True)
class Method:
    """A method that scores a prompt's tokens or segments.

    In formulas, f is the target (`interp.attribution.targets`), e_i the embedding of token i, e the
    prompt, b a baseline, d the embeddings of a donor, and A the attention of the last token. v(S)
    is the mean of f over K donors, with the segments of S kept and all others taken from the donor;
    N is the set of all k segments.
    """

    name: str
    """Name in options and tables; LIBRARY:METHOD for a method from a library."""
    summary: str
    formula: str
    source: str
    """Author and year."""
    sign: str
    """Meaning of a score's sign, and the unit."""
    cost: str
    """Number of passes through the model for one prompt of n tokens."""
    implementation: str
    """MODULE:NAME of a callable that takes a model and returns a SharedPass or an OwnPasses of
    `interp.attribution.method`."""
    donors: bool = False
    """Whether the method uses donors: replacements for segments, which the prompt's system
    provides.
    """
    tokens: bool = True
    """Whether the method scores each token rather than whole segments."""
    reads_heads: bool = False
    """Whether the method reads attention or the outputs of heads."""

    @property
    def signed(self) -> bool:
        """Whether scores can be negative, for tokens that lower f."""
        return self.sign.startswith("signed")

    @property
    def differentiates(self) -> bool:
        """Whether the method needs a backward pass."""
        return "backward" in self.cost

    @property
    def reads_coalitions(self) -> bool:
        """Whether scores are computed from the values v(S), as measured effects are."""
        return self.donors and not self.tokens


DEFAULT_METHODS = ("input_gradient", "attention")
"""The default methods."""

CHEAP_METHODS = (*DEFAULT_METHODS, "leave_one_out:deletion")
"""Methods that require few passes and support every kind of model."""

_SIGNED = "signed: what the token adds to f, in f's unit"
_BY_SEGMENT = "signed: what the segment adds to f, in f's unit; only segments are scored"
_SIZE = "never negative: change of f per unit of embedding"

_OWN = (
    Method(
        "input_gradient",
        "how strongly the target responds to a change in a token's embedding",
        "|df/de_i|, L2 norm",
        "Simonyan et al. 2014",
        _SIZE,
        "1 forward + 1 backward, shared",
        "interp.attribution.methods.gradient:InputGradient",
    ),
    Method(
        "attention",
        "attention that the last token, which predicts the answer, pays to each token",
        "mean of A_i over heads and layers, each layer's sum over tokens being 1",
        "Bahdanau et al. 2015",
        "never negative: a weight",
        "1 forward, shared",
        "interp.attribution.methods.attention:Attention",
        reads_heads=True,
    ),
    Method(
        "input_x_gradient",
        "first-order estimate of the target's change from zero embeddings",
        "e_i . df/de_i",
        "Shrikumar et al. 2016",
        _SIGNED,
        "1 forward + 1 backward, shared",
        "interp.attribution.methods.gradient:InputXGradient",
    ),
    Method(
        "frozen_norms",
        "input x gradient through norms whose denominators are constants",
        "e_i . df/de_i, f with constant denominators",
        "Ali et al. 2022",
        _SIGNED,
        "1 forward + 1 backward",
        "interp.attribution.methods.gradient:FrozenNorms",
    ),
    Method(
        "gim",
        "difference from a donor times the gradient under modified backward rules",
        "(e_i - d_i) . df/de_i; norms frozen, softmax at T = 2, factors share gradients",
        "Edin et al. 2025",
        _SIGNED,
        "1 forward + 1 backward",
        "interp.attribution.methods.gradient:Gim",
        donors=True,
    ),
    Method(
        "integrated_gradients",
        "gradients along the straight line from a donor to the prompt",
        "(e_i - d_i) . mean of df/de_i over 20 points from d to e",
        "Sundararajan et al. 2017",
        _SIGNED,
        "20 forward + 20 backward",
        "interp.attribution.methods.captum:IntegratedGradients",
        donors=True,
    ),
    Method(
        "attention_rollout",
        "attention through all layers, averaged with the residual stream in each layer",
        "last row of the product over layers of (A + I) / 2, A: all tokens, mean over heads",
        "Abnar and Zuidema 2020",
        "never negative: a weight",
        "1 forward",
        "interp.attribution.methods.attention:AttentionRollout",
        reads_heads=True,
    ),
    Method(
        "value_weighted_norm",
        "norm of what the heads move from each token to the last token",
        "mean over layers and heads of |A_i v_i W_O|",
        "Kobayashi et al. 2020",
        "never negative: a norm in the residual stream",
        "1 forward, plus a projection of each head's values",
        "interp.attribution.methods.attention:ValueWeightedNorm",
        reads_heads=True,
    ),
    Method(
        "leave_one_out:deletion",
        "change of the target when a segment's tokens are deleted",
        "f(e) - f(e without the segment)",
        "Li et al. 2016",
        _BY_SEGMENT,
        "k + 1 forward",
        "interp.attribution.methods.perturbation:ByDeletion",
        tokens=False,
    ),
    Method(
        "leave_one_out:donor",
        "change of the target when a segment comes from donors",
        "v(N) - v(N without i)",
        "Li et al. 2016",
        _BY_SEGMENT,
        "k K + 1 forward",
        "interp.attribution.methods.perturbation:ByDonor",
        donors=True,
        tokens=False,
    ),
    Method(
        "shapley",
        "what a segment adds, averaged over all orders of adding segments",
        "sum over S without i of |S|! (k - |S| - 1)! / k! (v(S + i) - v(S))",
        "Shapley 1953",
        _BY_SEGMENT,
        "(2^k - 1) K + 1 forward",
        "interp.attribution.methods.perturbation:Shapley",
        donors=True,
        tokens=False,
    ),
    Method(
        "context_cite",
        "weights of the kept segments in a sparse linear model of the target",
        "LASSO (0.01) of v(S) on 32 random S, standardized",
        "Cohen-Wang et al. 2024",
        _BY_SEGMENT,
        "at most (2^k - 1) K + 1 forward",
        "interp.attribution.methods.perturbation:ContextCite",
        donors=True,
        tokens=False,
    ),
    Method(
        "captum:kernel_shap",
        "Shapley values estimated from random coalitions; a control",
        "weighted least squares of v(S) on 32 random S",
        "Lundberg and Lee 2017",
        _BY_SEGMENT,
        "at most (2^k - 1) K + 1 forward",
        "interp.attribution.methods.captum:KernelShap",
        donors=True,
        tokens=False,
    ),
    Method(
        "captum:lime",
        "a linear model near the prompt; a control",
        "LASSO (0.01) of v(S) on 32 random S, weighted by their nearness to N",
        "Ribeiro et al. 2016",
        _BY_SEGMENT,
        "at most (2^k - 1) K + 1 forward",
        "interp.attribution.methods.captum:Lime",
        donors=True,
        tokens=False,
    ),
    Method(
        "captum:integrated_gradients",
        "gradients along the straight line from the baseline to the prompt",
        "(e_i - b) . mean of df/de_i over 200 points from b to e",
        "Sundararajan et al. 2017",
        _SIGNED,
        "200 forward + 200 backward",
        "interp.attribution.methods.captum:MeanIntegratedGradients",
    ),
    Method(
        "captum:deep_lift",
        "differences from the baseline, passed back through activation functions",
        "sum of multipliers m(e_i) (e_i - b), rescale rule",
        "Shrikumar et al. 2017",
        _SIGNED,
        "2 forward + 2 backward",
        "interp.attribution.methods.captum:DeepLift",
    ),
    Method(
        "captum:occlusion",
        "change of the target when one token is replaced by the baseline",
        "f(e) - f(e with e_i = b)",
        "Zeiler and Fergus 2014",
        _SIGNED,
        "n + 1 forward",
        "interp.attribution.methods.captum:Occlusion",
    ),
)


def method_names() -> list[str]:
    """The names of all methods; the toolkit's own come before those of other packages."""
    return list(dict.fromkeys([*(method.name for method in _OWN), *plugins(METHODS)]))


def find_method(name: str) -> Method:
    """The method with this name.

    Raises:
        UserError: there is no such method, or another package's entry point cannot be loaded or
            does not refer to a method.
    """
    for method in _OWN:
        if method.name == name:
            return method
    check_methods([name])
    point = plugins(METHODS)[name]
    found = loaded(point)
    if not isinstance(found, Method) or found.name != name:
        raise misfit(point, found, "an interp.attribution.registry.Method of that name")
    return found


def check_methods(names: Sequence[str]) -> None:
    """Check that there is at least one method name, and that all names are known.

    Raises:
        UserError: there is no name, or a name is unknown.
    """
    known = method_names()
    if not names:
        raise UserError(f"no method given; expected one or more of {', '.join(known)}")
    for name in names:
        if name not in known:
            raise UserError(unknown("method", name, known))
