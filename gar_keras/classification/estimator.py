"""GAR as a scikit-learn classifier. Needs scikit-learn."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, Self

import keras
import numpy as np
from numpy.typing import ArrayLike

from gar_keras import models
from gar_keras.classification import fit as fitting
from gar_keras.classification import saved
from gar_keras.classification.settings import FitSettings
from gar_keras.data_adapters import (
    as_labeled,
    as_unlabeled,
    check_columns,
    is_read_in_batches,
)
from gar_keras.engine.streams import is_stream
from gar_keras.utils.checked import documented
from gar_keras.utils.softmax import softmax
from gar_keras.utils.types import Images, Tensor
from gar_keras.utils.validation import count_missing, unmasked

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.metrics import accuracy_score
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
        "pip install 'gar_keras[sklearn]'"
    ) from e

Network = Literal["auto"] | keras.Model | Callable[..., keras.Model]


@documented(FitSettings)
class GARClassifier(ClassifierMixin, BaseEstimator):
    """A semi-supervised classifier: pretraining, then GAR (Algorithm 1).

    `fit` takes labelled and unlabelled rows together, as scikit-learn's
    semi-supervised estimators do: -1 in `y` marks a row as unlabelled. Where
    the labels are strings, `y` may be an object array with the number -1, or
    an array of strings with `"-1"`, which is what NumPy makes of it, or with
    the empty string. With no row unlabelled it is plain supervised training,
    and warns of that.

    One of scikit-learn's own checks is expected to fail, for that marker:
    `check_classifiers_classes` ends with the classes -1 and 1, whose rows of
    -1 count as unlabelled here, so that one class is left. scikit-learn
    exempts its own semi-supervised estimators from it by name.

    Args:
        network: `"auto"` for `gar_keras.cnn6` on images (sides of 4 to 64
            pixels) and a network of two hidden layers on features, each with
            its scaling; a `keras.Model` from rows as they are to logits,
            which is copied with its weights; or a function
            `network(input_shape, num_classes)` that returns a new one.
        {settings}
        random_state: Seed or `RandomState`, of weights, dropout, batches and
            validation rows. `None` for another one in each `fit`.
        verbose: As in Keras' `fit`.

    Attributes:
        classes_: The labels `(n,)`, sorted, without the marker.
        model_: The fitted `keras.Model`, from rows to logits.
        n_features_in_: `X.shape[1]` in `fit`.
        summary_: A `gar_keras.classification.fit.Summary`: counts, errors on
            the validation rows before and after stage 2, histories, classes
            lost. `print` shows it in one line, as `fit` does if `verbose`.
            `None` where stage 2 was interrupted.

    Example:

    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(60) % 2
    >>> X = rng.normal(size=(60, 3)) + 4 * y[:, None]
    >>> few = np.where(np.arange(60) < 10, y, -1)
    >>> model = GARClassifier(pretrain_epochs=20, epochs=2, random_state=0)
    >>> bool(model.fit(X, few).score(X, y) > 0.9)
    True
    """

    def __init__(
        self,
        network: Network = "auto",
        *,
        pretrain_epochs: int | None = FitSettings.pretrain_epochs,
        epochs: int | Literal["auto"] = FitSettings.epochs,
        labeled_per_batch: int | None = FitSettings.labeled_per_batch,
        unlabeled_per_batch: int = FitSettings.unlabeled_per_batch,
        affinity: float = FitSettings.affinity,
        balance: float = FitSettings.balance,
        frobenius: float = FitSettings.frobenius,
        class_prior: str | Sequence[float] = FitSettings.class_prior,
        validation_fraction: float = FitSettings.validation_fraction,
        learning_rate: float = FitSettings.learning_rate,
        supervised: float = FitSettings.supervised,
        shift: int = FitSettings.shift,
        affine: float = FitSettings.affine,
        consistency: float = FitSettings.consistency,
        vat: float = FitSettings.vat,
        average: float = FitSettings.average,
        vat_radius: float = FitSettings.vat_radius,
        rate: str = FitSettings.rate,
        warmup_steps: int | None = FitSettings.warmup_steps,
        global_clipnorm: float = FitSettings.global_clipnorm,
        precision: str = FitSettings.precision,
        random_state: Any = None,
        verbose: int | str = 0,
    ) -> None:
        self.network = network
        self.pretrain_epochs = pretrain_epochs
        self.epochs = epochs
        self.labeled_per_batch = labeled_per_batch
        self.unlabeled_per_batch = unlabeled_per_batch
        self.affinity = affinity
        self.balance = balance
        self.frobenius = frobenius
        self.class_prior = class_prior
        self.validation_fraction = validation_fraction
        self.learning_rate = learning_rate
        self.supervised = supervised
        self.shift = shift
        self.affine = affine
        self.consistency = consistency
        self.vat = vat
        self.average = average
        self.vat_radius = vat_radius
        self.rate = rate
        self.warmup_steps = warmup_steps
        self.global_clipnorm = global_clipnorm
        self.precision = precision
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Images,
        y: Tensor | None = None,
        X_unlabeled: Images | None = None,
    ) -> Self:
        """Trains on labelled and unlabelled rows.

        Where an exception ends it after stage 1, Ctrl-C among them, the
        estimator has the model as it is, but no summary: with the weights
        of the epoch of least validation error where there are validation
        examples.

        Args:
            X: Features `(m, f)`, or images `(m, h, w)` or `(m, h, w, c)`.
                Images of one channel get that axis, `(h, w, 1)`. Or a
                `tf.data.Dataset` or `keras.utils.PyDataset` of pairs, which
                is taken into memory.
            y: Labels `(m,)`; -1 for unlabelled rows. `None` where `X` is a
                data set of pairs.
            X_unlabeled: Unlabelled rows by themselves, if none are in `X`, in
                any form that `gar_keras.regularize` takes, e.g. a data set
                larger than memory. Stage 2 sees these rows then.

        Returns:
            The estimator itself.

        Raises:
            ValueError: if the data or the settings are not valid: wrong
                shapes, NaN, no label, one class only, an output of the
                network without a label.
            FloatingPointError: if the loss becomes NaN or infinite.
        """
        if is_stream(X):
            X, y = as_labeled(X, y, names=("X", "y"))
        X, y = unmasked("X", X), unmasked("y", y)
        _check_none_missing(y)
        check_columns(("X", X), X_unlabeled=X_unlabeled)
        X, y = validate_data(self, X, y, allow_nd=True)
        settings = FitSettings.of(self)
        x = fitting.as_input(X, "X")
        apart = None
        if X_unlabeled is not None:
            apart = fitting.unlabeled_input(X_unlabeled, x, "X_unlabeled")
            _check_all_labeled(y)
        labels = y[~fitting.is_unlabeled(y)]
        fitting.check_some_label(labels)
        check_classification_targets(labels)
        classes, targets = fitting.encode(y)
        fitting.check_every_class(
            targets[targets != fitting.UNLABELED], len(classes)
        )
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        progress = fitting.Progress()
        # The training too: an average of the weights is kept in new layers.
        with fitting.seeded(seed):
            model = self._make_network(x.shape[1:], len(classes), x)
            try:
                summary = fitting.fit(
                    model,
                    x,
                    targets,
                    settings,
                    x_unlabeled=apart,
                    class_names=classes.tolist(),
                    seed=seed,
                    verbose=self.verbose,
                    reporter=progress,
                )
            # Ctrl-C, too.
            except BaseException as e:
                if progress.stage_1_is_done:
                    self._keep(model, classes, x, None)
                    e.add_note(f"The estimator has the model of {progress}.")
                raise
        if self.verbose:
            print(summary)
        self._keep(model, classes, x, summary)
        return self

    def _keep(self, model, classes, x, summary):
        self.classes_ = classes
        self.model_ = fitting.for_prediction(model)
        self.summary_ = summary
        self._kind = x.shape[1:], x.dtype

    def save(self, path: str | Path) -> None:
        """Writes the model as plain Keras, with the names of the classes.

        Keras loads the file without this package. `python -m gar_keras
        predict` and `gar_keras.classification.saved.class_names` find the
        names in it.

        Args:
            path: Path of the .keras file.
        """
        check_is_fitted(self)
        saved.save(self.model_, path, self.classes_.tolist())

    def predict(self, X: Images) -> np.ndarray:
        """The most likely label of each row, `(m,)`.

        Args:
            X: Rows, as in `fit`; also a data set, an `h5py.Dataset` or an
                image source, which are read batch by batch.
        """
        logits = self._logits(X)
        return self.classes_[np.argmax(logits, axis=1)]

    def predict_proba(self, X: Images) -> np.ndarray:
        """Probabilities `(m, n)`, in the order of `classes_`.

        They are the softmax of the logits. GAR makes these large: the
        probabilities are confident, not calibrated.
        """
        return softmax(self._logits(X))

    def score(
        self,
        X: Images,
        y: Tensor | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """The accuracy on the labelled rows.

        Unlabelled rows are left out, so that a search over partly labelled
        data, e.g. scikit-learn's `GridSearchCV`, compares accuracies. What it
        calls by name, `scoring="accuracy"`, counts each of them as an error.

        Args:
            X: Rows, as in `fit`, or a data set of pairs.
            y: Labels `(m,)`; -1 for unlabelled rows. `None` for a data set.
            sample_weight: Weights of the rows `(m,)`, or `None`.

        Returns:
            The share of labelled rows whose label is predicted, from 0 to 1.

        Raises:
            ValueError: if no row is labelled.
        """
        if is_stream(X):
            X, y = as_labeled(X, y, names=("X", "y"))
        y = unmasked("y", y)
        predicted = self.predict(X)
        y = column_or_1d(y)
        check_consistent_length(predicted, y, sample_weight)
        labeled = ~fitting.is_unlabeled(y)
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

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags

    def _logits(self, X):
        check_is_fitted(self)
        if is_read_in_batches(X):
            x = as_unlabeled(X, "X")
        else:
            X = unmasked("X", X)
            X = validate_data(self, X, reset=False, allow_nd=True)
            x = fitting.as_input(X, "X")
        fitting.check_same_kind(x, *self._kind, "X")
        return fitting.predict_logits(self.model_, x)

    def _make_network(self, input_shape, num_classes, x):
        if isinstance(self.network, str) and self.network == "auto":
            return fitting.default_network(x, num_classes, self.precision)
        if self.precision != "auto":
            raise ValueError(
                "precision is for the network 'auto'. Received: "
                f"precision={self.precision!r} beside a network of your own. "
                "Leave it out, and give the layers of the network their dtype."
            )
        if isinstance(self.network, keras.Model):
            return _copy(self.network)
        if not callable(self.network):
            raise ValueError(
                "network must be 'auto', a keras.Model or a function of "
                "(input_shape, num_classes) that returns one. Received: "
                f"network={self.network!r}"
            )
        model = self.network(input_shape, num_classes)
        if not isinstance(model, keras.Model):
            raise ValueError(
                "The function network must return a keras.Model. Received: "
                f"{model!r}"
            )
        return model


def _check_none_missing(y):
    """Raises if a label is `None` or NaN. Without `y` scikit-learn raises."""
    missing = 0 if y is None else count_missing(y)
    if missing:
        raise ValueError(
            "y must mark rows without a label with -1, or with '' where the "
            f"labels are strings. Received: {missing} of {len(y)} labels that "
            "are None or NaN. Replace them."
        )


def _check_all_labeled(y):
    """Raises if a row is unlabelled."""
    marked = np.count_nonzero(fitting.is_unlabeled(y))
    if marked:
        raise ValueError(
            "y must have no row without a label beside X_unlabeled. Received: "
            f"{marked} of {len(y)} rows without one. Put them into "
            "X_unlabeled, or leave that out."
        )


def _copy(model):
    """A model of the same architecture and weights."""
    # Of its graph alone: Keras cannot clone all that may be compiled in.
    graph = models.uncompiled(model) if models.has_graph(model) else model
    copy = keras.models.clone_model(graph)
    copy.set_weights(model.get_weights())
    return copy
