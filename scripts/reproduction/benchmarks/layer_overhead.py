"""Overhead of the regularizer, as paired ratios from one process."""

from functools import partial

import keras
import numpy as np

from gar_keras.datasets import load_mnist
from gar_keras.engine.batches import BatchSampler, TrainingData
from gar_keras.engine.fit import compile_options, fit
from gar_keras.engine.optimizers import sgd
from gar_keras.layers import GraphActivityRegularization
from gar_keras.models import POLICIES, cnn6, without_dropout
from reproduction.benchmarks import timing
from reproduction.datasets import InfiMNIST


def measure(case, tell):
    """Times supervised training with and without GAR's terms (section 4.1).

    `tell` is for `timing.interleave`.
    """
    ways = (partial(stretch, case, gar) for gar in (False, True))
    return timing.compare(timing.interleave(*ways, case.pairs, tell=tell))


def stretch(case, gar):
    """The function that trains, with or without GAR, and returns its time."""
    keras.utils.set_random_seed(0)
    network = without_dropout(
        cnn6(
            num_classes=case.num_classes,
            preprocessing=keras.layers.Rescaling(1 / 255, dtype="float32"),
            dtype=POLICIES[case.precision],
        )
    )
    logits = network.outputs[0]
    if gar:
        logits = GraphActivityRegularization()(logits)
    model = keras.Model(network.inputs, logits)
    model.compile(
        sgd(),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        **compile_options(model, case.steps),
    )
    train = partial(fit, model, feed(case), epochs=2, verbose=0)
    return timing.training(train, case.steps)


def feed(case):
    """The images of a case, labels that mean nothing, and their batches."""
    sampler = BatchSampler(
        case.num_images,
        case.batch_size,
        images_per_epoch=case.steps * case.batch_size,
        in_random_order=True,
    )
    labels = np.arange(case.num_images) % case.num_classes
    mnist = load_mnist().x_train
    if case.num_images <= len(mnist):
        return TrainingData(sampler, mnist[: case.num_images], labels=labels)
    # Its first 60,000 images are MNIST's as they are: begin behind them.
    first = 1 + -(-len(mnist) // sampler.images_per_epoch)
    images = InfiMNIST(length=case.num_images)
    return TrainingData(sampler, images, labels=labels, first_epoch=first)
