"""What a call warns of."""

from gar_keras.utils.warnings import shown_by


def said(call):
    """The warnings of GAR in a call, each as often as it is shown."""
    texts = []
    with shown_by(texts.append):
        call()
    return texts
