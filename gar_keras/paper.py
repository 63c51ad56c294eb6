"""The paper's settings (section 4), which all defaults are taken from."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from gar_keras.utils.checked import settings

# The largest coefficient that a float32 weight can hold.
LARGEST_COEFFICIENT = float(np.finfo("float32").max)

Coefficient = Annotated[float, Field(ge=0, le=LARGEST_COEFFICIENT)]

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


@settings
class Coefficients:
    """The coefficients of `U(B)`.

    Example:

    >>> Coefficients(balance=2).coefficients
    {'affinity': 3.0, 'balance': 2.0, 'frobenius': 1e-06}
    """

    affinity: Coefficient = 3.0
    """c_α, the coefficient of the affinity."""
    balance: Coefficient = 1.0
    """c_β, the coefficient of the balance."""
    frobenius: Coefficient = 1e-6
    """c_F, the coefficient of the Frobenius norm."""

    @property
    def coefficients(self):
        """These settings alone, as a dict."""
        return {name: getattr(self, name) for name in COEFFICIENTS}


COEFFICIENTS = tuple(Coefficients.__dataclass_fields__)
