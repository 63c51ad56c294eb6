"""Quiet backends, chosen by KERAS_BACKEND as in any Keras program."""

import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("MPLBACKEND", "agg")


def pytest_configure(config):
    # Many tests train networks that know nothing yet, and lose classes.
    config.addinivalue_line(
        "filterwarnings", "ignore::gar_keras.alerts.GARWarning"
    )
