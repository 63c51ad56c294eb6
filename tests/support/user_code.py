"""Code as a user writes it, checked by mypy and run by a test.

A comment `type: ignore` stands where mypy must object.
"""

from collections.abc import Callable
from typing import assert_type

import keras
import numpy as np

import gar_keras


def both_stages(model: keras.Model, x: np.ndarray, y: np.ndarray) -> float:
    gar_keras.pretrain(model, x, y, epochs=2, validation_data=(x, y))
    gar_keras.regularize(
        model,
        x,
        x,
        epochs=1,
        layer=gar_keras.GraphActivityRegularization(class_prior=[0.7, 0.3]),
        optimizer=gar_keras.sgd(0.1),
        verbose="auto",
    )
    gar_keras.regularize(
        model,
        x,
        x,
        y_labeled=y,
        method=[gar_keras.GAR(), gar_keras.CrossEntropy(0.5)],
        epochs=1,
    )
    assert_type(gar_keras.expected_balance(128, 10), float)
    return gar_keras.error_rate(model, x, y)


def classifier(x: np.ndarray, y: np.ndarray) -> float:
    fitted = gar_keras.GARClassifier(
        method=[gar_keras.SafeGAR(affinity=2.0), gar_keras.CrossEntropy()],
        pretrain_epochs=2,
        epochs=1,
    ).fit(x, y)
    assert_type(fitted, gar_keras.GARClassifier)
    return assert_type(fitted.score(x, y), float)


def what_is_wrong(
    model: keras.Model, x: np.ndarray, y: np.ndarray
) -> list[Callable[[], object]]:
    """Calls of which each must fail."""
    return [
        lambda: gar_keras.pretrain(model, x, y, epochs="many"),  # type: ignore[arg-type]
        lambda: gar_keras.pretrain(model, x, y, epoch=1),  # type: ignore[call-arg]
        lambda: gar_keras.regularize(model, x),  # type: ignore[call-arg]
        lambda: gar_keras.sgd("fast"),  # type: ignore[arg-type]
        lambda: gar_keras.GARClassifier(epochs="many").fit(x, y),  # type: ignore[arg-type]
        lambda: gar_keras.VAT(shifts=2),  # type: ignore[call-arg]
        lambda: gar_keras.pretrian(model),  # type: ignore[attr-defined]
        # Of a class with a base that has no types, mypy takes any argument.
        lambda: gar_keras.GARClassifier(shift=2),
    ]
