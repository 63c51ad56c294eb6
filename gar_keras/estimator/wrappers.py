"""What meta-estimators of scikit-learn around a classifier do to -1.

Most take it for a class, or leave its rows out, before they call `fit`. What
`fit` knows of them are the calls that it is in.
"""

import inspect

import numpy as np

from gar_keras.estimator.examples import UNLABELED, as_labels, is_unlabeled
from gar_keras.utils.warnings import warn


def check_wrappers(own, num_unlabeled):
    """Warns if no row is unlabelled, and raises in a calibration if one was.

    Args:
        own: The classifier whose `fit` calls this.
        num_unlabeled: How many rows it got without a label.
    """
    wrapper = _that_has_unlabeled_rows(own)
    if (num_unlabeled or wrapper) and any(map(_is_of_calibration, _calls())):
        raise _calibrated_without_labels()
    if num_unlabeled:
        return
    advice = f"Mark unlabelled examples with {UNLABELED} in y, and fit"
    if wrapper:
        advice = f"{wrapper} made a class of them, or left them out. Fit"
    warn(
        "No example is unlabelled: this is plain supervised training, without "
        f"GAR. {advice} GARClassifier by itself, in a Pipeline or in a search: "
        "other meta-estimators of scikit-learn, and cross_val_predict of "
        "probabilities, do not pass -1 on. They can have the fitted one, in a "
        "FrozenEstimator, and the labelled rows."
    )


def check_calibration():
    """Raises if a calibration of unlabelled rows asks for probabilities."""
    frames = filter(_is_of_calibration, _calls())
    if any(map(_has_unlabeled_rows, frames)):
        raise _calibrated_without_labels()


def _calibrated_without_labels():
    return ValueError(
        "CalibratedClassifierCV takes -1 for a class: its probabilities would "
        "be wrong. Received: rows without a label. Fit GARClassifier first, "
        "and calibrate it on labelled rows: "
        "CalibratedClassifierCV(FrozenEstimator(fitted)).fit(X, y)."
    )


def _is_of_calibration(frame):
    # By the module: a process of joblib begins with a function of it.
    return frame.f_globals.get("__name__") == "sklearn.calibration"


def _that_has_unlabeled_rows(own):
    """The innermost estimator in `fit` that has some, by name, or `None`."""
    for frame in _calls():
        estimator = frame.f_locals.get("self")
        is_fit = frame.f_code.co_name == "fit" and estimator is not own
        if is_fit and hasattr(estimator, "get_params"):
            if _has_unlabeled_rows(frame):
                return type(estimator).__name__
    return None


def _has_unlabeled_rows(frame):
    """Whether a call got labels with -1 among them."""
    # Some write over the labels that they got.
    own = getattr(frame.f_locals.get("self"), "__dict__", {})
    return _has_marker(frame.f_locals.get("y")) or _has_marker(
        own.get("classes_")
    )


def _calls():
    """The frames of the calls that the caller is in, the innermost first."""
    frame = inspect.currentframe()
    while frame is not None:
        yield frame
        frame = frame.f_back


def _has_marker(labels):
    """Whether -1, or what stands for it, is among labels in any form."""
    try:
        return bool(np.any(is_unlabeled(np.asarray(as_labels(labels)))))
    except (TypeError, ValueError):
        return False
