"""The attribution methods: their formulas, sources and implementations.

A method is one class in `interp.attribution.methods` and one entry here. Another package adds a
method by an entry point of the group `interp.methods` that refers to a `Method`. Nothing heavy is
imported here, so methods are listed and unknown names rejected quickly.
"""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from interp import texts
from interp.errors import UserError, unknown
from interp.options import FromText, Options
from interp.plugins import METHODS, loaded, misfit, plugins
from interp.variants import NoOptions, Variants, name_of


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
    """MODULE:NAME of a callable that takes a model, and each of the `options` by name, and returns
    a SharedPass or an OwnPasses of `interp.attribution.method`."""
    donors: bool = False
    """Whether the method uses donors: replacements for segments, which the prompt's system
    provides."""
    tokens: bool = True
    """Whether the method scores each token rather than whole segments."""
    reads_heads: bool = False
    """Whether the method reads attention or the outputs of heads."""
    options: type[Options] = NoOptions
    """The options of the method: whole numbers, numbers, true or false, or one of several words,
    all with defaults. Their docstrings are listed by `interp methods`."""
    complete: str = ""
    """The difference in f to which the scores add up, and when; empty if they need not add up.
    Options that bring them nearer are in backticks. `TokenScores.completeness_gap` is the sum of
    the scores minus this difference."""

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


class Steps(Options):
    """The option of integrated gradients from a donor."""

    steps: Annotated[int, Field(ge=1, le=1000)] = 20
    """number of points on the line (Gauss-Legendre); whether they suffice, the completeness gap
    tells"""


class LongSteps(Options):
    """The option of integrated gradients from the mean embedding."""

    steps: Annotated[int, Field(ge=1, le=1000)] = 200
    """number of points on the line (Gauss-Legendre); more than from a donor, since the mean
    embedding is farther from the prompt"""


class Samples(Options):
    """The option of methods that read random coalitions of segments."""

    samples: Annotated[int, Field(ge=2, le=100_000)] = 32
    """number of random S; each S is read only once"""


class Sparse(Samples):
    """The options of a LASSO."""

    penalty: Annotated[float, Field(gt=0, allow_inf_nan=False), FromText(texts.number, "X")] = 0.01
    """weight of the penalty on absolute coefficients, which sets small scores to zero"""


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
        "(e_i - d_i) . mean of df/de_i over m = steps points from d to e",
        "Sundararajan et al. 2017",
        _SIGNED,
        "`steps` forward + `steps` backward",
        "interp.attribution.methods.captum:IntegratedGradients",
        donors=True,
        options=Steps,
        complete="to f(e) - f(d), as `steps` grow",
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
        complete="to v(N) - v(nothing)",
    ),
    Method(
        "context_cite",
        "weights of the kept segments in a sparse linear model of the target",
        "LASSO (penalty) of v(S) on m = samples random S, standardized",
        "Cohen-Wang et al. 2024",
        _BY_SEGMENT,
        "at most (2^k - 1) K + 1 forward",
        "interp.attribution.methods.perturbation:ContextCite",
        donors=True,
        tokens=False,
        options=Sparse,
    ),
    Method(
        "captum:kernel_shap",
        "Shapley values estimated from random coalitions; a control",
        "weighted least squares of v(S) on m = samples random S",
        "Lundberg and Lee 2017",
        _BY_SEGMENT,
        "at most (2^k - 1) K + 1 forward",
        "interp.attribution.methods.captum:KernelShap",
        donors=True,
        tokens=False,
        options=Samples,
        complete="to v(N) - v(nothing)",
    ),
    Method(
        "captum:lime",
        "a linear model near the prompt; a control",
        "LASSO (penalty) of v(S) on m = samples random S, weighted by their nearness to N",
        "Ribeiro et al. 2016",
        _BY_SEGMENT,
        "at most (2^k - 1) K + 1 forward",
        "interp.attribution.methods.captum:Lime",
        donors=True,
        tokens=False,
        options=Sparse,
    ),
    Method(
        "captum:integrated_gradients",
        "gradients along the straight line from the baseline to the prompt",
        "(e_i - b) . mean of df/de_i over m = steps points from b to e",
        "Sundararajan et al. 2017",
        _SIGNED,
        "`steps` forward + `steps` backward",
        "interp.attribution.methods.captum:MeanIntegratedGradients",
        options=LongSteps,
        complete="to f(e) - f(b), as `steps` grow",
    ),
    Method(
        "captum:deep_lift",
        "differences from the baseline, passed back through activation functions",
        "sum of multipliers m(e_i) (e_i - b), rescale rule",
        "Shrikumar et al. 2017",
        _SIGNED,
        "2 forward + 2 backward",
        "interp.attribution.methods.captum:DeepLift",
        complete="to f(e) - f(b), if only activation functions are nonlinear",
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


def find_method(label: str) -> Method:
    """The method of a label, whatever its options.

    Raises:
        UserError: there is no such method, or another package's entry point cannot be loaded or
            does not refer to a method.
    """
    name = name_of(label)
    for method in _OWN:
        if method.name == name:
            return method
    point = plugins(METHODS).get(name)
    if point is None:
        raise UserError(unknown("method", name, method_names()))
    plugin = loaded(point)
    if not isinstance(plugin, Method) or plugin.name != name:
        raise misfit(point, plugin, "an interp.attribution.registry.Method of that name")
    declared = plugin.options
    if not (isinstance(declared, type) and issubclass(declared, Options)) or any(
        field.is_required() for field in declared.model_fields.values()
    ):
        raise misfit(point, declared, "options that are an interp.options.Options with defaults")
    return plugin


def modules_of(label: str) -> list[str]:
    """The modules on which a method's numbers depend: its implementation, and its declaration."""
    method, point = find_method(label), plugins(METHODS).get(name_of(label))
    module = method.implementation.partition(":")[0]
    return [module] if point is None else [module, point.module]


ATTRIBUTION = Variants("method", method_names, lambda name: find_method(name).options)
"""The attribution methods with their options."""


def check_by_coalitions(name: str) -> None:
    """Refuse a method that reads more than values of coalitions; one of another package might."""
    if not _reads_only_coalitions(name):
        allowed = [other for other in method_names() if _reads_only_coalitions(other)]
        raise UserError(
            f"the method {name!r} reads more than the values of coalitions, which are all that "
            f"effects measure; expected some of {', '.join(allowed)}"
        )


def _reads_only_coalitions(name: str) -> bool:
    method = find_method(name)
    return method.reads_coalitions and method.implementation.startswith("interp.")
