"""Code as a user writes it, for mypy: nothing here is ever run.

A comment `type: ignore` stands where mypy must object.
"""

from typing import assert_type

import keras
import numpy as np

import gar_keras


def both_stages(model: keras.Model, x: np.ndarray, y: np.ndarray) -> float:
    gar_keras.pretrain(model, x, y, epochs=2000, validation_data=(x, y))
    gar_keras.regularize(
        model,
        x,
        x,
        layer=gar_keras.GraphActivityRegularization(class_prior=[0.7, 0.3]),
        optimizer=gar_keras.sgd(0.1),
        verbose="auto",
    )
    gar_keras.ExtendedGAR(shift=2).train(model, x, y, x)
    assert_type(gar_keras.expected_balance(128, 10), float)
    classifier = gar_keras.GARClassifier(shift=2).fit(x, y)
    assert_type(classifier, gar_keras.GARClassifier)
    assert_type(classifier.score(x, y), float)
    return gar_keras.error_rate(model, x, y)


def what_is_wrong(model: keras.Model, x: np.ndarray, y: np.ndarray) -> None:
    gar_keras.pretrain(model, x, y, epochs="many")  # type: ignore[arg-type]
    gar_keras.pretrain(model, x, y, epoch=1)  # type: ignore[call-arg]
    gar_keras.regularize(model, x)  # type: ignore[call-arg]
    gar_keras.sgd("fast")  # type: ignore[arg-type]
    gar_keras.GARClassifier(epochs="many")  # type: ignore[arg-type]
    gar_keras.ExtendedGAR(shifts=2)  # type: ignore[call-arg]
    gar_keras.pretrian(model)  # type: ignore[attr-defined]
