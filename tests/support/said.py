"""What a call warns of."""

import warnings

from gar_keras.utils.warnings import GARWarning


def said(call):
    """The warnings of GAR in a call, each as often as it is shown."""
    with warnings.catch_warnings(record=True) as found:
        # As in a program.
        warnings.simplefilter("default", GARWarning)
        call()
    return [str(w.message) for w in found if w.category is GARWarning]
