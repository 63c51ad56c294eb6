"""What the command lines that train or measure have in common."""

import os
import re
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar, Literal, get_args

import tyro

from gar_keras.engine import hardware
from gar_keras.regularizers import BalanceOf, FrobeniusOf
from reproduction import cli, paths, settings
from reproduction.settings import EXPERIMENTS
from reproduction.sweep import sweep

MAX_SEEDS = 10_000


def parse_seeds(text, option="--seeds"):
    """Seeds from the text of an option.

    Example:

    >>> parse_seeds("0,2,5-7")
    [0, 2, 5, 6, 7]
    """
    ranges = [_range_of(part) for part in text.split(",")]
    if not all(ranges) or sum(map(len, ranges)) > MAX_SEEDS:
        raise ValueError(
            f"{option} takes numbers and ranges such as 0-9 or 0,2,5-7, each "
            f"below 1e9, at most {MAX_SEEDS} of them. Received: {text!r}"
        )
    return [seed for part in ranges for seed in part]


def _range_of(text):
    """The numbers that a part of such a text is of; none if it is of none."""
    # Keras takes no seed that is much larger.
    found = re.fullmatch(r"\s*(\d{1,9})(?:-(\d{1,9}))?\s*", text)
    if found is None:
        return range(0)
    first, last = int(found[1]), int(found[2] or found[1])
    return range(first, last + 1)


Precision = Annotated[
    Literal[("auto", *get_args(settings.Precision))],
    tyro.conf.arg(
        help="Precision between the layers. auto: bfloat16 where the hardware "
        "computes in it."
    ),
]


def default_backend():
    return os.environ.get("KERAS_BACKEND") or "tensorflow"


@dataclass(frozen=True)
class Options:
    """Options of every script that trains or measures."""

    backend: settings.Backend = field(default_factory=default_backend)
    """Keras backend; what KERAS_BACKEND names, if it is set."""
    results: cli.Folder = field(default_factory=paths.own)
    """Folder of the records."""

    def __post_init__(self):
        cli.check_folder("--results", self.results)


@dataclass(frozen=True)
class RunOptions(Options):
    """Options of every script that trains."""

    seeds: str = "0-9"
    """Seeds to run, e.g. 0-9 or 0,2,5-7."""
    epochs: int | None = None
    """Epochs of stage 2. By default those of the setting: in the paper's tables
    200, InfiMNIST 133 and SVHN 100."""
    pretrain_epochs: int | None = None
    """Epochs of stage 1. By default those of the setting: in the paper's tables
    2,000."""
    images_per_epoch: int | None = None
    """Images of X_U in an epoch of stage 2; all by default. For a quick try."""
    frobenius_of: FrobeniusOf | None = None
    """Matrix of the Frobenius term: the rectified logits B, as in the paper and
    by default, or the unrectified ones Z, as in the authors' code."""
    balance_of: BalanceOf | None = None
    """What the balance is made of: the diagonal of N, as in the paper and by
    default, or the column sums of B, as in the authors' code until May 2017."""
    precision: Precision = "auto"
    data_dir: cli.OptionalFolder = None
    """Folder of the data files, for data that are not in the package, or of
    MNIST's own."""
    save_models: bool = False
    """Save the model of the validation-chosen epoch beside its record."""
    share_stage_1: bool = False
    """Keep the end of stage 1 in the results, and take it up in runs that have
    the same stage 1, such as GAR and the baselines."""
    jobs: int = 1
    """Runs to make at once, in processes of their own, each with an equal share
    of the cores' threads. On a CPU a run repeats bit for bit only with the same
    number of threads, which TF_NUM_INTRAOP_THREADS sets: the order in which
    TensorFlow adds depends on it. For several GPUs take --ray local."""
    ray: str | None = None
    """Make the runs on the Ray cluster at this address: auto, HOST:PORT or
    ray://HOST:10001, or local to start one here. A run gets a GPU, or else an
    equal share of the cores. If its machine is lost it begins again. --data-dir
    has to be there on each machine. --precision auto looks at this one."""

    def __post_init__(self):
        super().__post_init__()
        parse_seeds(self.seeds)
        cli.check_count("--epochs", self.epochs)
        cli.check_count("--pretrain-epochs", self.pretrain_epochs)
        cli.check_count("--images-per-epoch", self.images_per_epoch)
        cli.check_count("--jobs", self.jobs)
        # Of a cluster, the other machines need not have it in this place.
        if self.ray is None:
            cli.check_data_dir(self.data_dir)
        if self.ray is not None and self.jobs > 1:
            raise ValueError(
                "--jobs is for this machine, --ray for a cluster. Received: "
                f"--jobs {self.jobs} --ray {self.ray}"
            )

    def apply(self, experiment):
        """The experiment with these options in place of its settings."""
        e, given = experiment, {}
        e = e.with_gar(
            frobenius_of=self.frobenius_of, balance_of=self.balance_of
        )
        # What a method has no part in stays as it is: its runs are the same.
        if e.trains_network:
            names = "epochs", "pretrain_epochs", "images_per_epoch"
            given = {name: getattr(self, name) for name in names}
        auto = self.precision == "auto"
        precision = hardware.fast_precision() if auto else self.precision
        return replace(
            e,
            precision=precision,
            backend=self.backend,
            **{k: v for k, v in given.items() if v is not None},
        )


@dataclass(frozen=True)
class DataOptions(RunOptions):
    """Options of every script that runs one data set with some labels."""

    labels: tuple[int, ...] | None = None
    """Numbers of labelled images; by default all that the script has. A wrong
    one lists them."""
    data: ClassVar[str] = "mnist"

    def __post_init__(self):
        super().__post_init__()
        cli.check_values("--labels", self.labels, EXPERIMENTS[self.data])

    @property
    def wanted_labels(self):
        """The numbers of labels to run; all where none are named."""
        return EXPERIMENTS[self.data] if self.labels is None else self.labels

    @property
    def experiments(self):
        """The settings of each run, before the common options apply."""
        return [EXPERIMENTS[self.data][m] for m in self.wanted_labels]


def main(kind, description, show):
    """Reads a kind of `DataOptions`, and runs what they say as `run_table`."""
    options = cli.parse(kind, description)
    return run_table(options, options.experiments, show)


def run_table(options, experiments, show):
    """Runs experiments with `RunOptions` and shows their records.

    Returns the exit status: 0, or 1 if another process is at some of the runs.
    """
    cli.choose_backend(options.backend)
    if options.jobs > 1:
        hardware.take_part()
    with cli.one_line(": the same command goes on from the last epoch"):
        records, complete = sweep(
            [options.apply(e) for e in experiments],
            parse_seeds(options.seeds),
            options.results,
            jobs=options.jobs,
            ray=options.ray,
            data_dir=options.data_dir,
            save_models=options.save_models,
            share_stage_1=options.share_stage_1,
        )
        if records:
            show(records, options.results)
    return 0 if complete else cli.EXIT_UNFINISHED
