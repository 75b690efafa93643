"""The matrices of a mixed model, built from a table and the names of the model's terms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from patsy import DesignInfo, PatsyError, build_design_matrices, dmatrix

from interp.errors import UserError


class RankError(UserError):
    """The data cannot distinguish the coefficients."""


@dataclass(frozen=True)
class MixedFormula:
    """The model response ~ fixed + (1 + slope | group) + (1 | factor:group) per varying factor."""

    response: str
    """Column to explain."""
    fixed: tuple[str, ...]
    """Terms of the fixed effects, such as "modality", "perplexity", "a:b". Text columns are factors
    with their first category as the reference.
    """
    group: str
    """Column that defines the groups."""
    slope: str | None = None
    """Covariate whose slope varies by group; if None, only intercepts vary."""
    varying: tuple[str, ...] = ()
    """Factors whose effects vary by group: each level has a deviation in each group, with one
    variance per factor. If a factor is not listed, tests of its effects do not generalize to groups
    that were not measured (Barr et al., 2013, Journal of Memory and Language 68).
    """

    def __str__(self) -> str:
        random = "1" if self.slope is None else f"1 + {self.slope}"
        terms = [f"({random} | {self.group})", *(f"(1 | {f}:{self.group})" for f in self.varying)]
        return f"{self.response} ~ {self.equation} + {' + '.join(terms)}"

    @property
    def equation(self) -> str:
        """The fixed effects as the right-hand side of a formula."""
        return " + ".join(self.fixed) or "1"

    @property
    def variables(self) -> list[str]:
        """Columns of the fixed effects."""
        return list(dict.fromkeys(part for term in self.fixed for part in term.split(":")))

    @property
    def columns(self) -> list[str]:
        """All columns that the model uses."""
        slope = [] if self.slope is None else [self.slope]
        named = [self.response, *self.variables, self.group, *slope, *self.varying]
        return list(dict.fromkeys(named))

    def without(self, term: str) -> "MixedFormula":
        """The model without one fixed effect; the random effects are kept.

        Raises:
            UserError: the model has no such term.
        """
        if term not in self.fixed:
            raise UserError(f"{self} has no fixed effect {term!r}; it has {', '.join(self.fixed)}")
        return replace(self, fixed=tuple(other for other in self.fixed if other != term))


@dataclass(frozen=True)
class ModelMatrices:
    """The matrices of a mixed model, and the levels and means for encoding additional rows."""

    response: Float[np.ndarray, " rows"]
    fixed: Float[np.ndarray, "rows columns"]
    random: Float[np.ndarray, "rows effects"]
    random_columns: tuple[str, ...]
    """Names of the random effects: "intercept", the slope's covariate, and the levels of varying
    factors, such as "modality[box]"."""
    blocks: tuple[int, ...]
    """Number of levels of each varying factor. Their columns come last in `random`, and the levels
    of one factor share a variance."""
    info: DesignInfo
    levels: Mapping[str, tuple[str, ...]]
    """The levels of each factor among the terms, with the reference first."""
    means: Mapping[str, float]
    """The mean of each covariate among the terms."""

    @property
    def columns(self) -> list[str]:
        """Names of the fixed coefficients."""
        return list(self.info.column_names)

    def columns_of(self, term: str) -> Bool[np.ndarray, " columns"]:
        """Mask of the fixed coefficients of a term; all False if the term is not a fixed effect."""
        chosen = np.zeros(len(self.columns), dtype=bool)
        if term in self.info.term_names:
            chosen[self.info.slice(term)] = True
        return chosen

    def rows(self, frame: pd.DataFrame) -> Float[np.ndarray, "rows columns"]:
        """Encode rows of factors and covariates in the columns of the fixed effects."""
        return np.asarray(build_design_matrices([self.info], _categories(frame, self.levels))[0])


def make_design(frame: pd.DataFrame, formula: MixedFormula, *, random: bool) -> ModelMatrices:
    """The design of a formula for the rows of a table; without `random`, it has no random effects.

    Raises:
        UserError: there are no rows, a factor has one level, or the terms cannot be read or
            distinguished.
    """
    if frame.empty:
        raise UserError(f"no row has a value in every column of {formula}")
    variables = formula.variables
    numeric = [name for name in variables if pd.api.types.is_numeric_dtype(frame[name])]
    levels = {name: _levels(frame[name]) for name in variables if name not in numeric}
    for name, found in levels.items():
        if len(found) == 1:
            raise UserError(f"{name} is {found[0]} in every row; remove it from {formula}")
    try:
        matrix = dmatrix(formula.equation, _categories(frame, levels))
    except PatsyError as error:
        raise UserError(f"the fixed effects of {formula} cannot be read: {error}") from error
    values = np.asarray(matrix, dtype=float)
    _check_rank(values, matrix.design_info.column_names)
    effects: dict[str, Float[np.ndarray, " rows"]] = {}
    blocks = []
    if random:
        effects["intercept"] = np.ones(len(frame))
        if formula.slope is not None:
            effects[formula.slope] = frame[formula.slope].to_numpy(dtype=float)
        for name in formula.varying:
            of_factor = _levels(frame[name])
            blocks.append(len(of_factor))
            texts = frame[name].astype(str).to_numpy(dtype=object)
            effects |= {f"{name}[{level}]": (texts == level).astype(float) for level in of_factor}
    return ModelMatrices(
        response=frame[formula.response].to_numpy(dtype=float),
        fixed=values,
        random=np.array(list(effects.values())).reshape(len(effects), len(frame)).T,
        random_columns=tuple(effects),
        blocks=tuple(blocks),
        info=matrix.design_info,
        levels=levels,
        means={name: float(frame[name].mean()) for name in numeric},
    )


def _levels(column: pd.Series) -> tuple[str, ...]:
    """The levels that occur: in a categorical column's own order, and sorted for other columns."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        present = set(column)
        return tuple(str(level) for level in column.cat.categories if level in present)
    return tuple(sorted(set(column.astype(str))))


def _categories(frame: pd.DataFrame, levels: Mapping[str, tuple[str, ...]]) -> pd.DataFrame:
    """The table in the form that patsy requires: each factor is a column with ordered levels."""
    factors = {
        name: pd.Categorical(frame[name].astype(str).to_numpy(dtype=object), list(found))
        for name, found in levels.items()
    }
    return frame.assign(**factors)


def _check_rank(matrix: Float[np.ndarray, "rows columns"], columns: Sequence[str]) -> None:
    scales = np.abs(matrix).max(axis=0)
    rank = np.linalg.matrix_rank(matrix / np.where(scales > 0, scales, 1))
    if rank < len(columns):
        raise RankError(
            f"the rows can distinguish only {rank} of the {len(columns)} coefficients "
            f"({', '.join(columns)}); remove a term, or add rows for the missing combinations"
        )
