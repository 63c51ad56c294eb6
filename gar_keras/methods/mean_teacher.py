"""Mean Teacher.

A. Tarvainen and H. Valpola, *Mean teachers are better role models: weight-
averaged consistency targets improve semi-supervised deep learning results*,
NIPS 2017.

The teacher is a copy of the network (the student) whose weights are a running
average of the student's, `θ'_t = a θ'_{t-1} + (1 - a) θ_t`. The student's
predictions are pulled to the teacher's, both under dropout:

`cross-entropy of the labelled images + w(t) * mean over images and classes of
(student - teacher)^2`, with the ramp-up `w(t) = w_max exp(-5 (1 - t/T)^2)`.

The teacher is what is evaluated and what is kept. It takes in the weights of a
step at the beginning of the next one: the targets are those of the paper, and
after an epoch the teacher is short of its last step. The paper's Adam and the
schedule of its rate are left out.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from keras import ops

from gar_keras.engine.copies import copy_model, seeded
from gar_keras.engine.graphs import has_graph
from gar_keras.methods import losses
from gar_keras.methods.base import Term
from gar_keras.utils.validation import check_fields, check_number

COARSE = {"float16", "bfloat16"}


@dataclass(frozen=True)
class MeanTeacher(Term):
    """`w(t) * mean squared difference of student and teacher`.

    Args:
        weight: w_max. The paper: 100.
        ramp: T as a share of the training. The paper: 40,000 of 150,000 steps
            (CIFAR-10).
        decay_in_ramp: a up to T. The paper: 0.99.
        decay: a after T. The paper: 0.999.

    Raises:
        ValueError: if a value is not valid; in training, if Keras cannot copy
            the model.
    """

    name: ClassVar[str] = "consistency"
    keeps_dropout = True

    weight: float = 100.0
    ramp: float = 40 / 150
    decay_in_ramp: float = 0.99
    decay: float = 0.999

    def __post_init__(self):
        super().__post_init__()
        check_fields(self, check_number, "ramp", high=1, closed="right")
        check_fields(self, check_number, "decay_in_ramp", "decay", high=1)

    def build(self, stage_2):
        stage_2.teacher = copy_of(stage_2.network, stage_2.seed)
        stage_2.evaluated = stage_2.teacher

    def loss(self, stage_2, x, y, logits):
        in_ramp = stage_2.done() < self.ramp
        a = ops.where(in_ramp, self.decay_in_ramp, self.decay)
        pairs = zip(
            stage_2.teacher.weights, stage_2.network.weights, strict=True
        )
        for mean, new in pairs:
            if new.trainable:
                kept = ops.cast(a, mean.dtype) * mean
                taken = ops.cast(1 - a, mean.dtype) * ops.stop_gradient(new)
                mean.assign(kept + taken)
            else:
                # Such as the statistics of a BatchNormalization.
                mean.assign(new)
        targets = ops.stop_gradient(stage_2.teacher(x, training=True))
        distance = ops.mean(losses.squared_distance(logits, targets))
        return losses.gaussian_ramp(stage_2.done(), self.ramp) * distance


def copy_of(network, seed):
    """A model of the same graph and weights, with noise of its own seed."""
    if not has_graph(network):
        raise ValueError(
            "The teacher is a copy of the model, but Keras cannot take apart "
            f"a subclassed one. Received: model={network.name!r}. Give a "
            "Functional or Sequential model."
        )
    coarse = {v.dtype for v in network.trainable_weights} & COARSE
    if coarse:
        raise ValueError(
            "An average of weights moves in steps that are lost in their "
            f"rounding. Received: model={network.name!r} with weights in "
            f"{coarse.pop()}. Give it a mixed policy, such as "
            "'mixed_bfloat16', whose weights are in float32."
        )
    with seeded(seed):
        copy = copy_model(network)
    copy.trainable = False
    rng = np.random.default_rng([seed, 1])
    weights = {id(weight) for weight in copy.weights}
    for noise in copy.variables:
        if id(noise) not in weights:
            noise.assign([rng.integers(1, 2**31), 0])
    return copy
