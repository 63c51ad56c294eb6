"""What the command lines that train or measure have in common."""

from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
import os
import re
import sys
import time
from typing import Annotated
from typing import ClassVar
from typing import Literal

import tyro

from gar_keras.datasets.registry import DATASETS
from gar_keras.engine import resources
from gar_keras.experiments import folders
from gar_keras.experiments.options import RunnerOptions
from gar_keras.experiments.options import check_for_cluster
from gar_keras.experiments.settings import BACKENDS
from gar_keras.experiments.settings import EXPERIMENTS
from gar_keras.experiments.settings import GRAPH_RIVALS
from gar_keras.experiments.settings import PRECISIONS
from gar_keras.experiments.settings import SettingsError
from gar_keras.experiments.workers import processes
from gar_keras.methods import METHODS
from gar_keras.paper import BalanceOf
from gar_keras.paper import FrobeniusOf
from gar_keras.utils import cli
from gar_keras.utils.loading import load_keras
from gar_keras.utils.optional import check_installed
from gar_keras.utils.validation import check_choice

MAX_SEEDS = 10_000

Address = Annotated[str | None, cli.one_value(str, "an address", "ADDRESS")]
# What is not a number is left to `check_labels`, which knows what is allowed.
Labels = Annotated[
    tuple[int, ...] | None,
    tyro.constructors.PrimitiveConstructorSpec(
        nargs="*",
        metavar="N ...",
        instance_from_str=lambda words: tuple(
            int(word) if word.isdecimal() else word for word in words
        ),
        is_instance=lambda value: True,
        str_from_instance=lambda value: [str(m) for m in value or ["None"]],
    ),
]


def parse_seeds(text, option="--seeds"):
    """Seeds from text such as `0-9` or `0,2,5-7`.

    Args:
        text: The text.
        option: Name of the option that it was given to.

    Example:

    >>> parse_seeds("0,2,5-7")
    [0, 2, 5, 6, 7]
    """
    ranges = [_seed_range(part) for part in text.split(",")]
    if not all(ranges) or sum(map(len, ranges)) > MAX_SEEDS:
        raise ValueError(
            f"{option} takes numbers and ranges such as 0-9 or 0,2,5-7, up to "
            f"{cli.MAX_SEED}, at most {MAX_SEEDS} of them. Received: {text!r}"
        )
    return [seed for part in ranges for seed in part]


def _seed_range(text):
    """The seeds of `3` or `5-7`; none if the text is neither."""
    match = re.fullmatch(r"\s*(\d{1,10})(?:-(\d{1,10}))?\s*", text)
    if match is None:
        return range(0)
    first, last = int(match[1]), int(match[2] or match[1])
    return range(first, last + 1) if last <= cli.MAX_SEED else range(0)


def check_labels(labels, experiments):
    """Raises unless there is an experiment for each number of labels."""
    wrong = [m for m in labels if m not in experiments]
    if wrong or not labels:
        allowed = ", ".join(map(str, experiments))
        raise ValueError(
            f"--labels takes {allowed}. Received: "
            f"{', '.join(map(str, wrong)) or 'none'}"
        )


def default_backend():
    """The backend named in `KERAS_BACKEND`, else TensorFlow."""
    name = os.environ.get("KERAS_BACKEND") or "tensorflow"
    check_choice("KERAS_BACKEND", name, BACKENDS)
    return name


Precision = Annotated[
    Literal[("auto", *PRECISIONS)],
    tyro.conf.arg(
        help="Precision between the layers. auto: bfloat16 where the hardware "
        "computes in it."
    ),
]


def chosen_precision(name):
    """The precision of that name; of `"auto"`, that of the hardware."""
    if name != "auto":
        return name
    from gar_keras.engine.hardware import fast_precision

    return fast_precision()


@dataclass(frozen=True)
class Options:
    """Options of every script that trains or measures."""

    backend: Literal[BACKENDS] = field(default_factory=default_backend)
    """Keras backend; what KERAS_BACKEND names, if it is set."""
    results: cli.Folder = field(default_factory=folders.own)
    """Folder of the records."""
    time_limit: cli.Seconds = None
    """Seconds after which to stop cleanly. The same command goes on later."""

    def __post_init__(self):
        cli.check_folder("--results", self.results)
        if self.time_limit is not None and not self.time_limit > 0:
            raise ValueError(
                f"--time-limit must be above 0. Received: {self.time_limit}"
            )


@dataclass(frozen=True)
class RunOptions(RunnerOptions, Options):
    """Options of every script that trains."""

    seeds: str = "0-9"
    """Seeds to run, e.g. 0-9 or 0,2,5-7."""
    epochs: int | None = None
    """Epochs of stage 2. The authors' code ran 200 (SVHN: 100)."""
    pretrain_epochs: int | None = None
    """Epochs of stage 1. The authors' code ran 2,000."""
    images_per_epoch: int | None = None
    """Images of X_U in an epoch of stage 2; all by default. For a quick try."""
    frobenius_of: FrobeniusOf = "B"
    """Matrix of the Frobenius term: the rectified logits B, as in the paper,
    or the unrectified ones Z, as in the authors' code."""
    balance_of: BalanceOf = "diagonal"
    """What the balance is made of: the diagonal of N, as in the paper, or the
    column sums of B, as in the authors' code until May 2017."""
    precision: Precision = "auto"
    jobs: int = 1
    """Runs to make at once, in processes of their own, each bound to an equal
    share of the cores. On a CPU a run repeats bit for bit only with the same
    number of threads, which TF_NUM_INTRAOP_THREADS sets: the order in which
    TensorFlow adds depends on it. On a GPU the runs share its memory; for
    several GPUs take --ray local."""
    ray: Address = None
    """Make the runs on the Ray cluster at this address: auto, HOST:PORT or
    ray://HOST:10001, or local to start one here. A run gets a GPU, or else an
    equal share of the cores. If its machine is lost, it goes on elsewhere from
    its state some 5 minutes before. --data-dir has to be there on each
    machine. --precision auto looks at this machine."""

    def __post_init__(self):
        super().__post_init__()
        parse_seeds(self.seeds)
        cli.check_at_least("--epochs", self.epochs, 1)
        cli.check_at_least("--pretrain-epochs", self.pretrain_epochs, 1)
        cli.check_at_least("--images-per-epoch", self.images_per_epoch, 1)
        # On a cluster it is there on each machine, which may not be this one.
        if self.ray is None:
            cli.check_data_dir(self.data_dir)
        if self.tensorboard:
            check_installed("tensorboard", "--tensorboard")
        cli.check_at_least("--jobs", self.jobs, 1)
        if self.ray is not None:
            self._check_ray()

    def _check_ray(self):
        if self.jobs > 1:
            raise ValueError(
                "--jobs is for this machine alone: with --ray, as many runs "
                "are made at once as the cluster has room for. Leave one of "
                f"them out. Received: --jobs {self.jobs} --ray {self.ray}"
            )
        check_for_cluster(self, cli.flag)
        check_installed("ray", "--ray", extra="ray")

    def apply(self, experiment):
        """The experiment with these options in place of its settings."""
        changes = {
            "precision": chosen_precision(self.precision),
            "backend": self.backend,
        }
        # What a method has no part in stays as it is: its runs are the same.
        if experiment.method not in GRAPH_RIVALS:
            names = ("epochs", "pretrain_epochs", "images_per_epoch")
            given = {name: getattr(self, name) for name in names}
            changes |= {k: v for k, v in given.items() if v is not None}
        return replace(experiment, **changes)


def data_of(names):
    """The type of an option of a data set, with its help text.

    Args:
        names: Keys of `EXPERIMENTS`.
    """
    notes = [
        f"{name}: {DATASETS[name].title}, {DATASETS[name].note}"
        for name in names
        if name in DATASETS
    ]
    help_text = tyro.conf.arg(help=f"Data set. {'; '.join(notes)}.")
    return Annotated[Literal[tuple(names)], help_text]


def labels_of(names, default):
    """The type of an option of numbers of labels, with its help text.

    Args:
        names: Keys of `EXPERIMENTS`.
        default: What is run by default, in words.
    """
    numbers = [
        f"{', '.join(map(str, EXPERIMENTS[name]))} ({name})" for name in names
    ]
    text = f"Numbers of labelled images: {', '.join(numbers)}. {default}."
    return Annotated[Labels, tyro.conf.arg(help=text)]


@dataclass(frozen=True)
class DataOptions(RunOptions):
    """Options of every script that runs one data set with some labels."""

    labels: Labels = None
    """Numbers of labelled images; by default all that the script has."""
    data: ClassVar[str] = "mnist"

    def __post_init__(self):
        super().__post_init__()
        check_labels(self.wanted_labels, EXPERIMENTS[self.data])

    @property
    def wanted_labels(self):
        """The numbers of labels to run."""
        return self.default_labels if self.labels is None else self.labels

    @property
    def default_labels(self):
        """The numbers of labels to run where none are named."""
        return tuple(EXPERIMENTS[self.data])

    @property
    def experiments(self):
        """The settings of each run, before the common options apply."""
        return [EXPERIMENTS[self.data][m] for m in self.wanted_labels]


def main(kind, description, show):
    """Reads the options of a script of `DataOptions`, and runs it.

    Args:
        kind: Subclass of `DataOptions`.
        description: What the script does, for `--help`.
        show: As in `run_table`.

    Returns:
        The exit status, as of `run_table`.
    """
    options = cli.parse(kind, description)
    return run_table(options, options.experiments, show)


def run_table(options, experiments, show):
    """Runs a table's experiments and shows the table.

    Args:
        options: `RunOptions`.
        experiments: List of `Experiment`, before the options apply.
        show: Function of the records and the results folder that shows what
            was made, such as `gar_keras.report.show_rivals`.

    Returns:
        The exit status: 0, 124 if runs are left to be done, for want of time
        or because another process is at them, or 130 after Ctrl-C.
    """
    # The time limit is that of all of it, Keras' start as well.
    started = time.monotonic()
    if options.keep_state:
        _check_can_be_extended(options, experiments)
    try:
        cli.choose_backend(options.backend)
        # Before anything that takes long.
        options.results.mkdir(parents=True, exist_ok=True)
        if options.jobs > 1 or options.ray is not None:
            resources.share_gpu()
        load_keras()
        return _table(options, experiments, show, started)
    except OSError as e:
        where = f" Received: {e.filename}." if e.filename else ""
        cli.fail(
            f"{e.strerror or e}.{where} Make room, or choose another folder "
            "with --results. The same command goes on with what is saved."
        )
    except KeyboardInterrupt:
        print(
            "interrupted: the same command goes on from the last finished "
            "epoch",
            file=sys.stderr,
        )
        return cli.EXIT_INTERRUPTED


def _check_can_be_extended(options, experiments):
    # The precision plays no part, and to choose it takes Keras.
    options = replace(options, precision="float32")
    for e in experiments:
        tied_by = options.apply(e).tied_by
        if tied_by is not None:
            cli.fail(
                "--keep-state is for GAR at the paper's rate and for more than "
                "one epoch: others depend on how many there are. Received: "
                f"{tied_by}. Leave it out"
            )


def _table(options, experiments, show, started):
    from gar_keras.datasets import DataError
    from gar_keras.experiments.records import RecordError
    from gar_keras.experiments.sweep import sweep

    experiments = [options.apply(e) for e in experiments]
    try:
        records, complete = sweep(
            experiments,
            parse_seeds(options.seeds),
            options.results,
            RunnerOptions.of(options),
            time_limit=options.time_limit,
            started=started,
            jobs=options.jobs,
            ray=options.ray,
        )
        if records:
            show(records, options.results)
    except (
        DataError,
        RecordError,
        SettingsError,
        FloatingPointError,
        ImportError,
        processes.WorkerError,
    ) as e:
        cli.fail(e)
    return 0 if complete else cli.EXIT_TIME
