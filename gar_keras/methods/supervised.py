"""Supervised only: what the labels give by themselves.

The control of the comparison. Stage 1 goes on with the log loss of the
labelled images, for as many steps as GAR takes and with the labelled images
that GAR's batches hold, without dropout, as in GAR's stage 2.

The unlabelled images have no part in the loss, so they are not fed to the
network: the seconds of a run are those of this method.
"""

from dataclasses import dataclass

import numpy as np

from gar_keras.methods.base import Rival


@dataclass(frozen=True)
class Supervised(Rival):
    """Goes on with the labels alone. There is nothing to choose."""

    def term(self, learner, x, y, logits):
        return 0.0, 0.0

    def data(self, plan, x_labeled, y_labeled, x_unlabeled):
        return {
            "plan": _GuidesAlone(plan),
            "images": x_labeled,
            "labels": y_labeled,
        }


class _GuidesAlone:
    """A plan of the labelled images that another plan draws, step by step."""

    guides_per_batch = 0

    def __init__(self, plan):
        self.plan = plan
        self.steps = plan.steps
        self.batch = plan.guides_per_batch
        self.per_epoch = plan.steps * plan.guides_per_batch

    def epoch(self, number):
        _, guides = self.plan.epoch(number)
        return guides.reshape(-1), np.zeros((self.steps, 0), "int64")
