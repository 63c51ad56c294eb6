"""Virtual adversarial training beside GAR: its radius and its factors."""

from types import SimpleNamespace

import keras
import numpy as np
import pytest

import gar_keras
from gar_keras.methods.vat import VirtualAdversarialTraining


def images(m=4):
    return np.random.default_rng(0).random((m, 6, 6, 1), "float32")


@pytest.mark.parametrize(
    "options, radius", [({}, 2.5), ({"vat_radius": 0.5}, 0.5)], ids=str
)
def test_images_are_moved_by_the_radius(options, radius):
    network = keras.Sequential(
        [
            keras.Input((6, 6, 1)),
            keras.layers.Flatten(),
            keras.layers.Dense(3, kernel_initializer="orthogonal"),
        ]
    )
    learner = SimpleNamespace(network=network)
    gar_keras.ExtendedGAR(vat=1.0, **options).prepare(learner, seed=0)
    x = keras.ops.convert_to_tensor(images())
    r = learner.adversary.perturbation(learner, x, network(x))
    lengths = np.linalg.norm(np.array(r).reshape(4, -1), axis=1)
    np.testing.assert_allclose(lengths, radius, rtol=1e-5)


def statistics_after(**options):
    """Those of a BatchNormalization in front, after an epoch."""
    keras.utils.set_random_seed(0)
    normalization = keras.layers.BatchNormalization(momentum=0.5)
    network = keras.Sequential(
        [
            keras.Input((6, 6, 1)),
            keras.layers.Flatten(),
            normalization,
            keras.layers.Dense(3),
        ]
    )
    gar_keras.ExtendedGAR(supervised=1.0, **options).train(
        network,
        images(3),
        np.arange(3),
        images(20),
        epochs=1,
        labeled_per_batch=2,
        unlabeled_per_batch=4,
        verbose=0,
    )
    return np.array([normalization.moving_mean, normalization.moving_variance])


@pytest.mark.slow
def test_adversarial_images_do_not_count_in_the_statistics():
    with_vat = statistics_after(vat=1.0, vat_radius=50.0)
    np.testing.assert_allclose(with_vat, statistics_after(), rtol=1e-6)


@pytest.mark.parametrize("radius", [0, -1.0, float("inf"), "far"])
def test_radius_that_is_no_length_is_refused(radius):
    with pytest.raises(ValueError, match="vat_radius.*Received: vat_radius="):
        gar_keras.ExtendedGAR(vat_radius=radius)


def test_entropy_needs_a_weight():
    with pytest.raises(ValueError, match="weight=0, entropy=2.0.*Minimization"):
        VirtualAdversarialTraining(weight=0.0, entropy=2.0)
    assert VirtualAdversarialTraining(weight=0.0).entropy == 0.0
