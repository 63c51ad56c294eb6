"""The paper's settings (section 4), which all defaults are taken from."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from gar_keras.utils.validation import check_fields, check_number

# The largest coefficient that a float32 weight can hold.
LARGEST_COEFFICIENT = float(np.finfo("float32").max)

# Of what the Frobenius norm is: B as in the paper, Z as in the authors' code.
FrobeniusOf = Literal["B", "Z"]
# What v is made of: the diagonal of N, as in the paper, or the column sums of
# B, as in the authors' code until May 2017.
BalanceOf = Literal["diagonal", "column sums"]

# SGD with Nesterov momentum; the rate of step t is RATE / (1 + DECAY * t).
LEARNING_RATE = 0.01
MOMENTUM = 0.95
DECAY = 1e-6

# Examples in a batch of either stage; in stage 2, on MNIST, b_L + b_U.
BATCH_SIZE = 128
LABELED_PER_BATCH = 16
UNLABELED_PER_BATCH = BATCH_SIZE - LABELED_PER_BATCH


@dataclass(frozen=True, kw_only=True)
class Coefficients:
    """The coefficients of `U(B)`.

    Args:
        affinity: c_α, the coefficient of the affinity.
        balance: c_β, the coefficient of the balance.
        frobenius: c_F, the coefficient of the Frobenius norm.

    Raises:
        ValueError: if one is not a finite number of at least 0.

    Example:

    >>> Coefficients(balance=2).coefficients
    {'affinity': 3.0, 'balance': 2.0, 'frobenius': 1e-06}
    """

    affinity: float = 3.0
    balance: float = 1.0
    frobenius: float = 1e-6

    def __post_init__(self):
        check_fields(
            self,
            check_number,
            *COEFFICIENTS,
            high=LARGEST_COEFFICIENT,
            closed="both",
        )

    @property
    def coefficients(self):
        """These settings alone, as a dict."""
        return {name: getattr(self, name) for name in COEFFICIENTS}


COEFFICIENTS = tuple(Coefficients.__dataclass_fields__)
