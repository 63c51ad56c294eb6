"""What the test images look like to the network, on its way and in the end."""

import numpy as np

from gar_keras.engine.fit import predict
from gar_keras.experiments.settings import KEPT_IMAGES
from gar_keras.utils import files
from gar_keras.utils.softmax import softmax

# Figure 2 of the paper shows these epochs of stage 2.
EPOCHS = (0, 1, 10, 50, 100)


class Snapshots:
    """The logits of some test images at some epochs of stage 2.

    Args:
        data: The `Dataset`.
        seed: Decides which images.
        last_epoch: Of stage 2; it is always shown.

    Attributes:
        epochs: The epochs kept.
        logits: The logits of each, float32 `(images, n)`.
    """

    def __init__(self, data, seed, last_epoch):
        self.data = data
        self.indices = np.random.default_rng(seed).permutation(
            len(data.x_test)
        )[:KEPT_IMAGES]
        self.wanted = {*EPOCHS, last_epoch}
        self.epochs = []
        self.logits = []

    def restore(self, epochs, logits):
        """Takes up what an earlier part of the run kept.

        The last epoch of a shorter run need not be one to be shown.
        """
        kept = dict(zip(epochs, logits, strict=True))
        kept = {i: z for i, z in kept.items() if i in self.wanted}
        self.epochs, self.logits = list(kept), list(kept.values())

    def take(self, epoch, model):
        """Keeps the logits, if the epoch is to be shown."""
        if epoch in self.wanted:
            images = self.data.x_test[self.indices]
            self.logits.append(predict(model, images))
            self.epochs.append(epoch)

    def write(self, path, model):
        """Writes the logits kept, with the images' indices and labels.

        And, of all test images, what a model predicts, for votes of several
        runs.

        Args:
            path: Of the `.npz` file.
            model: With the weights of the validation-chosen epoch.
        """
        logits = predict(model, self.data.x_test)
        chosen = softmax(logits.astype(float))
        arrays = {
            "indices": self.indices,
            "labels": self.data.y_test[self.indices],
            "test_labels": self.data.y_test.astype("uint8"),
            # Most of them are near 0 or 1: they take little room.
            "chosen_probabilities": chosen.astype("float16"),
        }
        for epoch, kept in zip(self.epochs, self.logits, strict=True):
            arrays[f"epoch_{epoch}"] = kept
        files.write_atomically(
            path,
            lambda file: np.savez_compressed(file, **arrays),
            mode="wb",
        )
