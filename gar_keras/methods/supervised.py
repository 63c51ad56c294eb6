"""Supervised only: what the labels give by themselves.

The control of the comparison. Stage 1 goes on with the cross-entropy of the
labelled images, for as many steps as GAR takes and with the labelled images
that GAR's batches hold, without dropout, as in GAR's stage 2.

The unlabelled images have no part in the loss, so they are not fed to the
network: the seconds of a run are those of this method.
"""

from dataclasses import dataclass

import numpy as np

from gar_keras.engine.batches import TrainingData
from gar_keras.methods.base import Method


@dataclass(frozen=True)
class Supervised(Method):
    """Goes on with the labels alone. There is nothing to choose."""

    def setup(self, network, data, initial_epoch=0):
        alone = _LabeledAlone(data.sampler)
        return self, TrainingData(alone, data.x_labeled, labels=data.y_labeled)


class _LabeledAlone:
    """A sampler of the labelled images that another draws, step by step."""

    labeled_per_batch = 0

    def __init__(self, sampler):
        self.sampler = sampler
        self.steps = sampler.steps
        self.batch = sampler.labeled_per_batch
        self.images_per_epoch = sampler.steps * sampler.labeled_per_batch

    def epoch(self, number):
        _, chosen = self.sampler.epoch(number)
        return chosen.reshape(-1), np.zeros((self.steps, 0), "int64")
