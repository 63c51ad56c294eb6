"""TensorFlow's logging."""

import logging
import os


def quiet_tensorflow():
    """Leaves out TensorFlow's notes and warnings, of which none is about GAR.

    Those of its C++ code are left out in processes that are started from here:
    in this one, TensorFlow may have read the environment already.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
