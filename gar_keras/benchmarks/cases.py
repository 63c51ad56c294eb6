"""Cases of the speed benchmark: networks, images and batches by name."""

import functools
from dataclasses import dataclass, replace

import keras
import numpy as np

from gar_keras import datasets
from gar_keras.benchmarks import roofline
from gar_keras.engine.batches import BatchSampler, Feed
from gar_keras.experiments.network import build_model
from gar_keras.experiments.settings import NORB, PRECISIONS, TABLE_1
from gar_keras.models import attach, without_dropout
from gar_keras.utils.validation import check_choice, check_count

# The units that are timed: a step of stage 2, a pass of stage 1 over the
# labelled images, the error of 1,000 images.
TASKS = ("regularize", "pretrain", "evaluate")

# The settings of the paper's experiments that have these networks.
EXPERIMENTS = {"cnn6": TABLE_1[100], "cnn9": NORB[1000]}
NORB_SHAPE = (32, 32, 2)
CLASSES = {"cnn6": 10, "cnn9": 5}

# Images to train on or to evaluate, as in the paper.
IMAGES = {
    "regularize": {"cnn6": 60_000, "cnn9": 24_300},
    "pretrain": {name: e.num_labeled for name, e in EXPERIMENTS.items()},
    "evaluate": {"cnn6": 10_000, "cnn9": 24_300},
}
# What is timed in one go, at least: steps, passes or evaluations. Much longer
# than it takes to start, and short enough for the machine to stay the same.
STRETCH = {
    "cpu": {"regularize": 67, "pretrain": 100, "evaluate": 1},
    "gpu": {"regularize": 536, "pretrain": 1000, "evaluate": 10},
}


@dataclass(frozen=True)
class Case:
    """A case that is timed against the plain path.

    Attributes:
        task: `"regularize"` (stage 2), `"pretrain"` (stage 1) or `"evaluate"`.
        network: `"cnn6"` or `"cnn9"` (f = 32).
        path: How it is done; one of `variants.available(task)`.
        precision: `"float32"` or `"bfloat16"`. The plain path has float32.
        images: Images of the task: X_U, X_L or those evaluated.
        stretch: Steps, passes or evaluations to time in one go, at least.
        pairs: Timed pairs of stretches.

    Raises:
        ValueError: if a value is not one of these.
    """

    task: str
    network: str
    path: str
    precision: str
    images: int
    stretch: int
    pairs: int = 10

    def __post_init__(self):
        check_choice("task", self.task, TASKS)
        check_choice("network", self.network, tuple(EXPERIMENTS))
        check_choice("precision", self.precision, PRECISIONS)
        check_count(
            "images", self.images, least=1, most=_MOST_IMAGES[self.network]
        )
        check_count("stretch", self.stretch, least=1)
        # One value has no quartiles.
        check_count("pairs", self.pairs, least=2)


# What MNIST and NORB have to train on.
_MOST_IMAGES = {"cnn6": 60_000, "cnn9": 24_300}


class Workload:
    """The data, the networks and the batches of a case.

    The images of `cnn6` are MNIST's, as uint8. Those of `cnn9` are noise of
    NORB's shape and dtype: no kernel is faster or slower for it.
    """

    def __init__(self, case):
        self.case = case
        self.experiment = EXPERIMENTS[case.network]
        self.num_classes = CLASSES[case.network]

    @functools.cached_property
    def images(self):
        """The images of the task, as they are stored."""
        if self.case.network == "cnn6":
            return datasets.load("mnist").x_train[: self.case.images]
        rng = np.random.default_rng(0)
        shape = (self.case.images, *NORB_SHAPE)
        return rng.standard_normal(shape, "float32")

    @functools.cached_property
    def ready_images(self):
        """The images as float32, ready for a network without preprocessing."""
        if self.case.network == "cnn6":
            return self.images.astype("float32") / 255
        return self.images

    @property
    def num_labeled(self):
        """m_L: how many of the images, the first ones, count as labelled."""
        return min(self.experiment.num_labeled, self.case.images)

    @property
    def labels(self):
        """Class indices of the images."""
        return np.arange(self.case.images) % self.num_classes

    def network(self):
        """The network of the case, as the experiments build it."""
        return self._build(precision=self.case.precision)

    def plain_network(self):
        """The same network for `ready_images`, in float32."""
        return self._build(preprocessing="none", precision="float32")

    def _build(self, **changes):
        # The same weights for every path.
        keras.utils.set_random_seed(0)
        return build_model(
            replace(self.experiment, **changes),
            self.images.shape[1:],
            self.num_classes,
        )

    @functools.cached_property
    def sampler(self):
        """The batches of an epoch of the task, as the experiments have them."""
        e = self.experiment
        if self.case.task == "regularize":
            return BatchSampler(
                self.case.images,
                e.unlabeled_per_batch,
                self.num_labeled,
                e.labeled_per_batch,
            )
        return BatchSampler(self.case.images, e.batch_size)

    @property
    def feed(self):
        """The data of the task and their sampler, as the experiments have."""
        if self.case.task == "regularize":
            return Feed(
                self.sampler, self.images, self.images[: self.num_labeled]
            )
        return Feed(self.sampler, self.images, labels=self.labels)

    @property
    def images_per_unit(self):
        """Images of a step, of a pass, or 1,000."""
        if self.case.task == "regularize":
            return self.sampler.batch + self.sampler.labeled_per_batch
        return self.case.images if self.case.task == "pretrain" else 1000

    def operations(self):
        """The floor's operations of a unit, and the units they are of.

        Returns:
            `(operations, units)`. An evaluation is counted by the batch, for
            which the weights are read once.
        """
        if self.case.task == "regularize":
            model = attach(without_dropout(self.network()))
            return roofline.step_operations(model, self.images_per_unit), 1
        model = self.network()
        if self.case.task == "pretrain":
            sizes = _batch_sizes(self.case.images, self.sampler.batch)
            each = [roofline.step_operations(model, size) for size in sizes]
            return [o for operations in each for o in operations], 1
        # The batch size of `ErrorRate`.
        size = min(500, self.case.images)
        model = without_dropout(model)
        return roofline.forward_operations(model, size), size / 1000

    def lengths(self, at_once=1):
        """Epochs and steps in which `fit` runs a stretch of stage 2.

        Args:
            at_once: Steps that `fit` runs in one call: a divisor of those of
                an epoch.

        Returns:
            `(epochs, steps)`: part of an epoch, or whole ones.
        """
        steps = self.sampler.steps
        if self.case.stretch >= steps:
            return -(-self.case.stretch // steps), steps
        return 1, at_once * -(-self.case.stretch // at_once)


def _batch_sizes(images, batch):
    """Sizes of the batches of a pass; the last holds what is left."""
    rest = images % batch
    return [batch] * (images // batch) + ([rest] if rest else [])
