"""What a run is made of: data, network and method."""

from dataclasses import dataclass

import keras
import numpy as np

from gar_keras.augmentation import random_augmentation
from gar_keras.callbacks import ErrorRate
from gar_keras.data import stage_2_sampler
from gar_keras.experiments.data import (
    Task,
    load_data,
    make_task,
    unlabeled_images,
    versions_of_test,
)
from gar_keras.experiments.network import build_model
from gar_keras.experiments.settings import (
    PRIOR_OF_LABELS,
    Experiment,
    SettingsError,
)
from gar_keras.layers import GraphActivityRegularization
from gar_keras.methods import METHODS
from gar_keras.methods.ablation import ablated
from gar_keras.methods.gar import with_options
from gar_keras.regularizers import class_prior_of
from gar_keras.utils.validation import check_class_prior


@dataclass(frozen=True)
class Setup:
    """What a run is made of, before anything is trained.

    Attributes:
        experiment: The `Experiment`.
        seed: Seed of the run.
        training_seed: Seed of weights and batches.
        task: The `Task`.
        unlabeled: X_U, an array or an image source.
        unlabeled_source: A few words on what X_U was made from.
        class_prior: Shares of the classes as a list, or `None`.
        model: The network.
        method: What stage 2 trains with.
        augmentation: Layers that change the images of stage 1.
        errors: The `ErrorRate` of validation and test images.
        versions: That of further versions of the test images, which is
            measured from the end of stage 1 on.
    """

    experiment: Experiment
    seed: int
    training_seed: int
    task: Task
    unlabeled: object
    unlabeled_source: str
    class_prior: list | None
    model: keras.Model
    method: object
    augmentation: list
    errors: ErrorRate
    versions: ErrorRate

    @property
    def data(self):
        """The `Dataset`."""
        return self.task.data

    @property
    def split(self):
        """The `Split` of the training images."""
        return self.task.split

    @property
    def x_labeled(self):
        """X_L."""
        return self.data.x_train[self.split.labeled]

    @property
    def y_labeled(self):
        """Labels of X_L as the network is told them."""
        return self.task.y_labeled


def set_up(experiment, seed, data_dir=None):
    """Makes what a run needs, and checks that it fits together.

    Args:
        experiment: An `Experiment`.
        seed: Seed of the run.
        data_dir: Folder of the data files.

    Returns:
        A `Setup`.

    Raises:
        SettingsError: if stage 2 would refuse something after stage 1.
    """
    e = experiment
    data = load_data(e, data_dir)
    task = make_task(e.world, data, e.num_labeled, e.num_validation, seed)
    data = task.data
    unlabeled, source = unlabeled_images(
        e.unlabeled, task, data_dir, **_deformation(e)
    )
    class_prior = _class_prior(e.class_prior, task)
    training_seed = _restart_seed(seed, e.restart)
    keras.utils.set_random_seed(training_seed)
    setup = Setup(
        experiment=e,
        seed=seed,
        training_seed=training_seed,
        task=task,
        unlabeled=unlabeled,
        unlabeled_source=source,
        class_prior=class_prior,
        model=build_model(e, data.x_train.shape[1:], data.num_classes),
        method=_method(e, class_prior),
        augmentation=random_augmentation(
            e.pretrain_shift, e.pretrain_affine, training_seed
        ),
        errors=_errors(task),
        versions=ErrorRate(
            **{
                name: (images, data.y_test)
                for name, images in versions_of_test(e, data_dir).items()
            }
        ),
    )
    _check_stage_2(setup)
    return setup


def _class_prior(prior, task):
    n = task.data.num_classes
    if prior is None:
        return None
    if prior == PRIOR_OF_LABELS:
        # A class without a label would have no share at all.
        prior = class_prior_of(task.y_labeled, n, smoothing=1)
    return list(check_class_prior(prior, n))


def _restart_seed(seed, restart):
    """Seed of weights and batches; the seed itself in the first run."""
    if not restart:
        return seed
    return int(np.random.default_rng([seed, restart]).integers(2**31))


def _method(e, class_prior):
    entry = METHODS[e.method]
    if not entry.set_by_experiment:
        return entry()
    options = {
        **e.coefficients,
        "frobenius_of": e.frobenius_of,
        "balance_of": e.balance_of,
        "class_prior": class_prior,
    }
    if e.ablation is not None:
        return ablated(e.ablation, **options)
    return with_options(e.extensions, GraphActivityRegularization(**options))


def _deformation(e):
    if e.unlabeled != "infimnist":
        return {}
    return {"field_strength": e.field_strength}


def _errors(task):
    x, y = task.data.x_train, task.data.y_train
    held_out = task.split.validation
    return ErrorRate(
        val_error=(x[held_out], y[held_out]),
        test_error=(task.data.x_test, task.data.y_test),
    )


def _check_stage_2(setup):
    """Refuses now what stage 2 would refuse after stage 1."""
    e = setup.experiment
    if not METHODS[e.method].network:
        return
    try:
        setup.method.check_batches(e.labeled_per_batch)
        stage_2_sampler(
            setup.x_labeled,
            setup.unlabeled,
            e.labeled_per_batch,
            e.unlabeled_per_batch,
            e.images_per_epoch,
            setup.training_seed,
        )
        setup.method.check(setup.model, setup.unlabeled)
    except ValueError as error:
        raise SettingsError(str(error)) from error
