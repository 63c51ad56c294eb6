"""GAR as a scikit-learn classifier. Needs scikit-learn."""

import copy
import math
import weakref
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

import keras
import numpy as np
from numpy.typing import ArrayLike

from gar_keras.engine.batches import BATCH_SIZE, UNLABELED_PER_BATCH, take
from gar_keras.engine.copies import copy_model, seeded
from gar_keras.engine.data import (
    COMPARED,
    sizes_of,
    warn_if_of_other_sizes,
)
from gar_keras.engine.data import num_classes as num_classes_of
from gar_keras.engine.fit import check_epochs, predict
from gar_keras.engine.graphs import (
    check_own_fit,
    ensure_built,
    has_graph,
    uncompiled,
)
from gar_keras.engine.optimizers import (
    LEARNING_RATE,
    sgd,
    stage_2_optimizer,
)
from gar_keras.engine.precision import blocks, warn_if_lost
from gar_keras.estimator.examples import (
    UNLABELED,
    as_input,
    as_labels,
    encode,
    is_unlabeled,
    keep_back,
)
from gar_keras.estimator.networks import default_network, of_raw_rows
from gar_keras.layers import GraphActivityRegularization
from gar_keras.methods import method_of
from gar_keras.methods.base import needs_labels
from gar_keras.methods.safe_gar import given_prior
from gar_keras.models import warn_of_own_training
from gar_keras.training import plan_stage_2, pretrain, regularize
from gar_keras.utils.types import Tensor
from gar_keras.utils.validation import (
    check_columns,
    check_count,
    received,
    unmasked,
)
from gar_keras.utils.warnings import warn

try:
    from scipy.special import softmax
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.metrics import accuracy_score
    from sklearn.preprocessing import StandardScaler
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import (
        check_consistent_length,
        check_is_fitted,
        column_or_1d,
        validate_data,
    )
except ImportError as e:
    raise ImportError(
        "GARClassifier needs scikit-learn 1.6 or newer: "
        "pip install 'gar_keras[scikit-learn]'"
    ) from e

# Steps of stage 1 by default: those of the paper's code, with 100 labels.
PRETRAIN_STEPS = 2000
LEAST_EPOCHS = 10

WITHOUT_STAGE_2 = (
    "No example is unlabelled: this is plain supervised training, without GAR. "
    "Mark unlabelled examples with -1 in y, and fit GARClassifier by itself, "
    "in a Pipeline or in a search: other meta-estimators of scikit-learn leave "
    "rows of -1 out, or make a class of them. They can have the fitted one, in "
    "a FrozenEstimator, and the labelled rows. The first classes of y are {}: "
    "is one of them your mark of an unlabelled row?"
)

Network = Literal["auto"] | keras.Model | Callable[..., keras.Model]


# What fits have trained, by id: a network of a function is to be a new one.
TRAINED = weakref.WeakValueDictionary()


def check_untrained(model):
    """Raises if a variable that is to be trained was so in an earlier fit."""
    for variable in model.trainable_variables:
        if TRAINED.get(id(variable)) is variable:
            raise ValueError(
                "The function network must make new layers in each call: "
                "otherwise folds of a search go on from one another. Received: "
                f"{variable.path!r}, which an earlier fit has trained. Make it "
                "within the function, or give the model, which is copied."
            )


@dataclass(eq=False, repr=False)
class GARClassifier(ClassifierMixin, BaseEstimator):
    """A semi-supervised classifier: pretraining, then GAR or another method.

    `fit` takes labelled and unlabelled rows together, as scikit-learn's
    semi-supervised estimators do: -1 in `y` marks a row as unlabelled, and so
    do `None`, NaN and pandas' NA. `X` may be a sparse matrix. Where
    the labels are strings, `y` may be an object array with the number -1, or
    an array of strings with `"-1"`, which is what NumPy makes of it, or with
    the empty string. With no row unlabelled, as in meta-estimators other than
    `Pipeline` and searches, it is plain supervised training, and warns.

    Numbers may be in any unit: for the network that is made here the columns of
    a table are standardized in float64, by scikit-learn's `StandardScaler`. A
    network of one's own gets X in float32 as it is, with a `GARWarning` if that
    does not hold a column, such as seconds since 1970. A sparse X is made dense
    some rows at a time, and takes the memory of a dense float32 array.

    In a search over its settings (`GridSearchCV`, `cross_val_score`) leave
    `scoring` out: `score` looks at the labelled rows alone, while
    `scoring="accuracy"` and all others by name count each row of -1 as an
    error. For another figure give a function `(model, X, y)` that leaves these
    rows out. Mark them by -1 among numbers there, and by "" among names:
    scikit-learn makes no folds of anything else.

    Of scikit-learn's own checks `check_classifiers_classes` fails, in which -1
    is a class; its own semi-supervised estimators are exempt by name.

    Args:
        network: `"auto"` for `gar_keras.cnn6` on images (sides of 4 to 64
            pixels), in bfloat16 where the hardware computes in it, and a
            network of two hidden layers on features, each with its scaling; a
            `keras.Model` from rows as they are to logits; or a function
            `network(input_shape, num_classes)` that returns a new one. Of a
            model each `fit` trains a copy, which begins with the weights that
            the model has: in a cross-validation, give one that has not seen
            the labels.
        method: How stage 2 goes on: `"safe-gar"` as `gar_keras.regularize`
            with labels, `"gar"` with the paper's loss, another name in
            `gar_keras.methods.METHODS`, e.g. `"vat-entropy"`, or a list of
            terms, e.g. `[SafeGAR(affinity=2.0), CrossEntropy()]`.
        pretrain_epochs: Epochs over the labelled examples in stage 1; by
            default those of 2,000 steps, and at least 10.
        epochs: Epochs over all examples in stage 2.
        labeled_per_batch: b_L: labelled examples in a batch of stage 2; by
            default 16, or all in each batch where there are fewer.
        unlabeled_per_batch: b_U: further examples, of any kind, in a batch of
            stage 2.
        class_prior: Shares of the classes, as in `gar_keras.SafeGAR`, for
            `"safe-gar"`, whose default is `"predicted"`, and `"gar"`, whose is
            `"uniform"`; numbers are in the order of the sorted labels.
        validation_fraction: Share of the labelled examples of each class that
            is kept back to measure the error. The model ends with the weights
            of the least such error: of the last such epoch of stage 2, or of
            stage 1 if all have more. 0 to train on all to the last epoch.
        learning_rate: Initial learning rate of each stage.
        random_state: Seed or `RandomState`, of weights, dropout, batches and
            validation rows. `None` for another one in each `fit`.
        verbose: As in Keras' `fit`.

    Attributes:
        classes_: The labels `(n,)`, sorted, without the marker.
        model_: The fitted `keras.Model`, from rows to logits, to be saved
            with `model_.save`. It takes X as `fit` does, in float32, or images
            of uint8. A column far from 0 loses digits there, as any float32;
            `predict` scales it before.
        scaler_: The `sklearn.preprocessing.StandardScaler` of a table, or
            `None` for images and for a network of one's own.
        n_features_in_: `X.shape[1]` in `fit`.
        history_: The histories of the stages, `"pretraining"` and
            `"regularization"`: lists by name, as those of
            `gar_keras.pretrain` and `gar_keras.regularize`.

    Example:

    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(60) % 2
    >>> X = rng.normal(size=(60, 3)) + 4 * y[:, None]
    >>> few = np.where(np.arange(60) < 10, y, -1)
    >>> model = GARClassifier(pretrain_epochs=20, epochs=2, random_state=0)
    >>> bool(model.fit(X, few).score(X, y) > 0.9)
    True
    """

    network: Network = "auto"
    _: KW_ONLY
    method: str | Sequence = "safe-gar"
    pretrain_epochs: int | None = None
    epochs: int = 100
    labeled_per_batch: int | None = None
    unlabeled_per_batch: int = UNLABELED_PER_BATCH
    class_prior: str | Sequence[float] | None = None
    validation_fraction: float = 0.0
    learning_rate: float = LEARNING_RATE
    random_state: Any = None
    verbose: int | str = 0

    def fit(self, X: Tensor, y: Tensor) -> Self:
        """Trains on labelled and unlabelled rows.

        It writes its attributes at its end: where an exception ends it, Ctrl-C
        among them, the estimator is as it was before.

        Args:
            X: Features `(m, f)`, or images `(m, h, w)` or `(m, h, w, c)`.
                Images of one channel get that axis, `(h, w, 1)`. For more
                than memory holds there is `gar_keras.regularize`.
            y: Labels `(m,)`; -1 for unlabelled rows.

        Returns:
            The estimator itself.

        Raises:
            ValueError: if the data or the settings are not valid: wrong
                shapes, NaN, one class only, or an output of the network
                without a label.
            FloatingPointError: if the loss becomes NaN or infinite.
        """
        check_columns("X", X)
        names = list(getattr(X, "columns", ()))
        twice = {repr(name) for name in names if names.count(name) > 1}
        if twice:
            raise ValueError(
                "X must have a name of its own for each column. Received: "
                f"{', '.join(sorted(twice))} more than once. Rename the "
                "columns, or give X.to_numpy()."
            )
        X, y = unmasked("X", X), as_labels(unmasked("y", y))
        # What is refused or interrupted leaves the estimator as it was.
        fitted = copy.copy(self)
        X, y = validate_data(fitted, X, y, allow_nd=True, accept_sparse="csr")
        fitted.scaler_ = self._new_scaler(X)
        x = as_input(X, fitted.scaler_)
        fitted._kind = x.shape[1:], x.dtype
        fitted._sizes = sizes_of(x)
        fitted.classes_, targets = encode(y)
        num_classes = len(fitted.classes_)
        check_classification_targets(fitted.classes_[targets[targets >= 0]])
        check_epochs(self.epochs, 0)
        if self.pretrain_epochs is not None:
            check_count("pretrain_epochs", self.pretrain_epochs, least=1)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))

        has_label = targets != UNLABELED
        kept = keep_back(
            targets, self.validation_fraction, seed, fitted.classes_
        )
        labeled = np.setdiff1d(np.flatnonzero(has_label), kept)
        x_labeled, y_labeled = take(x, labeled), targets[labeled]
        validation = (take(x, kept), targets[kept]) if len(kept) else None
        model = self._new_network(x, num_classes, seed)
        method = self._method(targets[has_label], num_classes)
        stage_2 = {
            "y_labeled": y_labeled if needs_labels(method) else None,
            "method": method,
            "epochs": self.epochs,
            "labeled_per_batch": self.labeled_per_batch,
            "unlabeled_per_batch": self.unlabeled_per_batch,
            "validation_data": validation,
            "seed": seed,
        }
        plan = None
        if not has_label.all():
            # What stage 2 would refuse is refused before stage 1. It sees all
            # rows, as in the paper's code: those with a label and those kept
            # back among them.
            plan = plan_stage_2(model, x_labeled, x, settings={}, **stage_2)

        epochs = self.pretrain_epochs
        if epochs is None:
            steps = math.ceil(len(labeled) / BATCH_SIZE)
            epochs = max(math.ceil(PRETRAIN_STEPS / steps), LEAST_EPOCHS)
            if epochs > 100:
                # `pretrain` reports once in a divisor, and a prime has none.
                epochs = math.ceil(epochs / 100) * 100
        first = pretrain(
            model,
            x_labeled,
            y_labeled,
            epochs=epochs,
            optimizer=sgd(self.learning_rate),
            validation_data=validation,
            seed=seed,
            verbose=self.verbose,
        )
        TRAINED.update((id(v), v) for v in model.trainable_variables)
        fitted.history_ = {"pretraining": first.history}
        if plan is None:
            first_ten = ", ".join(map(str, fitted.classes_[:10]))
            warn(WITHOUT_STAGE_2.format(first_ten))
        else:
            steps = self.epochs * plan.data.sampler.steps
            optimizer = stage_2_optimizer(
                stage_2["method"], steps, self.learning_rate
            )
            second = regularize(
                model,
                x_labeled,
                x,
                optimizer=optimizer,
                class_names=fitted.classes_.tolist(),
                verbose=self.verbose,
                **stage_2,
            )
            fitted.history_["regularization"] = second.history
        # Plain Keras, without what only training needs; of the same layers.
        fitted._network = uncompiled(model) if has_graph(model) else model
        fitted.model_ = fitted._network
        if fitted.scaler_ is not None:
            fitted.model_ = of_raw_rows(fitted._network, fitted.scaler_)
        self.__dict__ = fitted.__dict__
        return self

    def predict(self, X: Tensor) -> np.ndarray:
        """The most likely label of each row, `(m,)`.

        Args:
            X: Rows, as in `fit`.
        """
        logits = self._logits(X)
        return self.classes_[np.argmax(logits, axis=1)]

    def predict_proba(self, X: Tensor) -> np.ndarray:
        """Probabilities `(m, n)`, in the order of `classes_`.

        They are the softmax of the logits. GAR makes these large: the
        probabilities are confident, not calibrated. Calibrate them on labelled
        rows, by scikit-learn's `CalibratedClassifierCV` of a `FrozenEstimator`.
        """
        return softmax(self._logits(X), axis=1)

    def score(
        self, X: Tensor, y: Tensor, sample_weight: ArrayLike | None = None
    ) -> float:
        """The accuracy on the labelled rows; others are left out.

        Args:
            X: Rows, as in `fit`.
            y: Labels `(m,)`; -1 for unlabelled rows.
            sample_weight: Weights of the rows `(m,)`, or `None`.

        Returns:
            The share of labelled rows whose label is predicted, from 0 to 1.

        Raises:
            ValueError: if no row is labelled.
        """
        predicted = self.predict(X)
        y = column_or_1d(as_labels(unmasked("y", y)))
        check_consistent_length(predicted, y, sample_weight)
        labeled = ~is_unlabeled(y)
        if not labeled.any():
            raise ValueError(
                "No row is labelled, so there is nothing to compare with. "
                f"Received: {len(y)} rows. Give y the label of some."
            )
        if sample_weight is not None:
            sample_weight = column_or_1d(sample_weight)[labeled]
        return accuracy_score(
            y[labeled], predicted[labeled], sample_weight=sample_weight
        )

    def __sklearn_clone__(self):
        # With the same network, of which each fit trains a copy: Keras' own
        # copies do not know which weights are frozen, nor a user's classes.
        bare = copy.copy(self)
        bare.network = "auto"
        cloned = super(GARClassifier, bare).__sklearn_clone__()
        cloned.network = self.network
        return cloned

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.sparse = True
        return tags

    def _logits(self, X):
        """Logits, float64 `(m, n)`."""
        check_is_fitted(self)
        check_columns("X", X)
        X = unmasked("X", X)
        X = validate_data(
            self, X, reset=False, allow_nd=True, accept_sparse="csr"
        )
        x = as_input(X, self.scaler_)
        shape, dtype = self._kind
        if x.shape[1:] != shape or x.dtype != dtype:
            raise ValueError(
                f"X must hold rows like those of fit, {shape} {dtype}. "
                f"Received: {x.shape[1:]} {x.dtype}. Scale and convert them in "
                "the same way."
            )
        # Rows of a table may well differ so, since a column can be of any unit,
        # and so may a few dark images.
        if len(shape) > 1 and len(x) >= COMPARED:
            warn_if_of_other_sizes("X", sizes_of(x), "that of fit", self._sizes)
        logits = predict(self._network, x).astype("float64")
        if not np.isfinite(logits).all():
            raise FloatingPointError(
                "The model gives logits that are NaN or infinite for these "
                "examples. Check their scale."
            )
        return logits

    def _new_scaler(self, X):
        """The fitted scaler of the columns of a table, or `None`."""
        is_table = len(X.shape) == 2
        if not (isinstance(self.network, str) and is_table):
            # The network gets the rows as they are.
            warn_if_lost("X", X)
            return None
        scaler = StandardScaler()
        # Some rows at a time: no copy of the table, and none of it dense.
        for _, block in blocks(X):
            scaler.partial_fit(block)
        return scaler

    def _new_network(self, x, num_classes, seed):
        """A network as `fit` begins with: the same one in each call."""
        network, model = self.network, None
        with seeded(seed):
            if isinstance(network, str) and network == "auto":
                model = default_network(x, num_classes)
            elif isinstance(network, keras.Model):
                check_own_fit(network)
                warn_of_own_training(network)
                model = copy_model(network, x)
            elif callable(network) and not isinstance(network, keras.Layer):
                model = network(x.shape[1:], num_classes)
            if not isinstance(model, keras.Model):
                raise ValueError(
                    "network must be 'auto', a keras.Model or a function of "
                    "(input_shape, num_classes) that returns one. Received: "
                    f"{received('network', network)}"
                )
            check_untrained(model)
            ensure_built(model, x)
            outputs = num_classes_of(model, "X", x)
        if outputs != num_classes:
            raise ValueError(
                "The network must have an output for each of the "
                f"{num_classes} classes that have a label. Received: {outputs} "
                f"outputs of {model.name!r}"
            )
        return model

    def _method(self, y_labeled, num_classes):
        """The method of stage 2, with the prior if one is given."""
        prior = given_prior(self.class_prior, y_labeled, num_classes)
        if self.class_prior is None:
            return method_of(self.method, {})
        if self.method == "gar":
            if prior == "predicted":
                raise ValueError(
                    'class_prior="predicted" is of method="safe-gar", which '
                    "finds the shares. Received: method='gar'. Give the "
                    'shares, "labeled" or "uniform".'
                )
            layer = GraphActivityRegularization(class_prior=prior)
            return method_of("gar", {"layer": layer})
        return method_of(self.method, {"class_prior": prior})
