"""The formula of a mixed model, and the matrix of its fixed effects for the rows of a table."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float
from patsy import DesignInfo, dmatrix

from interp import UserError


@dataclass(frozen=True)
class MixedFormula:
    """The model response ~ fixed + (1 + slope | group) + (1 | factor:group) per varying factor."""

    response: str
    """Column to explain."""
    fixed: tuple[str, ...]
    """Terms of the fixed effects, such as "modality", "perplexity", "a:b". Text columns are factors
    with their first category as the reference."""
    group: str
    """Column that defines the groups."""
    slope: str | None = None
    """Covariate whose slope varies by group; if None, only intercepts vary."""
    varying: tuple[str, ...] = ()
    """Factors whose effects vary by group: each level has a deviation in each group, with one
    variance per factor. Tests of other factors do not generalize to groups that were not measured
    (Barr et al., 2013, Journal of Memory and Language 68)."""

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
        named = [self.response, *self.variables, self.group, self.slope, *self.varying]
        return list(dict.fromkeys(name for name in named if name is not None))


@dataclass(frozen=True)
class Design:
    """The response and the fixed effects of each row."""

    response: Float[np.ndarray, " rows"]
    fixed: Float[np.ndarray, "rows columns"]
    info: DesignInfo
    """How rows are encoded."""
    levels: Mapping[str, list[str]]
    """The levels of each factor among the terms, with the reference first."""
    means: Mapping[str, float]
    """The mean of each covariate among the terms."""

    @property
    def columns(self) -> list[str]:
        """Names of the fixed coefficients."""
        return list(self.info.column_names)

    @property
    def constant(self) -> bool:
        """Whether the response does not vary, so that no term can explain it."""
        return bool(np.ptp(self.response) == 0)


def make_design(frame: pd.DataFrame, formula: MixedFormula) -> Design:
    """The design of a formula (UserError: no rows, one level, or terms that cannot be told)."""
    if frame.empty:
        raise UserError(f"no row has a value in every column of {formula}")
    variables = formula.variables
    numeric = [name for name in variables if pd.api.types.is_numeric_dtype(frame[name])]
    factors = {name: as_factor(frame[name]) for name in variables if name not in numeric}
    levels = {name: list(column.cat.categories) for name, column in factors.items()}
    for name, found in levels.items():
        if len(found) == 1:
            raise UserError(f"{name} is {found[0]} in every row; remove it from {formula}")
    matrix = dmatrix(formula.equation, frame.assign(**factors))
    fixed, columns = np.asarray(matrix, dtype=float), matrix.design_info.column_names
    scales = np.abs(fixed).max(axis=0)
    rank = np.linalg.matrix_rank(fixed / np.where(scales > 0, scales, 1))
    if rank < len(columns):
        raise UserError(
            f"the rows can distinguish only {rank} of the {len(columns)} coefficients "
            f"({', '.join(columns)}); remove a term, or add rows for the missing combinations"
        )
    return Design(
        response=frame[formula.response].to_numpy(dtype=float),
        fixed=fixed,
        info=matrix.design_info,
        levels=levels,
        means={name: float(frame[name].mean()) for name in numeric},
    )


def as_factor(column: pd.Series) -> pd.Series:
    """The column with the levels that occur: in a factor's own order, otherwise sorted."""
    if not isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(str).astype("category")
    return column.cat.remove_unused_categories()
