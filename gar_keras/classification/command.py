"""GAR on your own images or features, from .npz files.

Usage: python -m gar_keras {fit,predict} --help
"""

import csv
from dataclasses import dataclass
from pathlib import Path
import sys
import tempfile
from typing import Annotated

import numpy as np
from pydantic import Field
import tyro

from gar_keras.classification.settings import PRIORS
from gar_keras.classification.settings import FitSettings
from gar_keras.utils import cli
from gar_keras.utils.checked import CountOrAuto
from gar_keras.utils.checked import descriptions
from gar_keras.utils.checked import prior_or
from gar_keras.utils.checked import settings
from gar_keras.utils.files import NPZ_DAMAGE
from gar_keras.utils.files import replacing
from gar_keras.utils.loading import load_keras
from gar_keras.utils.softmax import softmax

KEYS = "x and y, or x_labeled, y_labeled and x_unlabeled"

FOUND = (
    "number of classes: the largest label and one; state it with --num-classes "
    "to be sure that none is missing"
)

File = Annotated[Path | None, cli.one_value(Path, "a file", "FILE")]


def _prior(text):
    """A prior from `uniform`, `labeled` or text such as `0.5,0.3,0.2`."""
    if text in PRIORS:
        return text
    return tuple(float(share) for share in text.split(","))


def _epochs(text):
    """A number of epochs, or `auto`."""
    return text if text == "auto" else int(text)


Epochs = Annotated[
    CountOrAuto,
    cli.one_value(_epochs, "a whole number or auto", "N|auto"),
    tyro.conf.arg(help=descriptions(FitSettings)["epochs"]),
]

Prior = Annotated[
    prior_or(*PRIORS),
    cli.one_value(
        _prior,
        "uniform, labeled or the shares of the classes, e.g. 0.5,0.3,0.2",
        "PRIOR",
    ),
    tyro.conf.arg(help=descriptions(FitSettings)["class_prior"]),
]


@settings
class _Files:
    """What fit reads and writes; a base, for `--help` begins with it."""

    data: File = None
    """The .npz file. Needed."""
    out: File = None
    """The .keras file to write: plain Keras, from examples as they are in
    --data to logits. Needed."""


@settings
class Fit(FitSettings, _Files):
    """Train a network on few labels and on many examples without any.

    The .npz file of --data holds either x and y, or x_labeled, y_labeled and
    x_unlabeled. Examples are images (m, h, w) or (m, h, w, c), uint8 or of a
    scale of your own, or features (m, f). Labels are class indices from 0, and
    in y -1 for unlabelled examples; or strings, the names of the classes, and
    in y "" or "-1". The names are kept in the file of --out.
    """

    num_classes: Annotated[int, Field(ge=2)] | None = None
    """n, the number of classes, each of which needs a label; by default the
    largest label and one."""
    epochs: Epochs = FitSettings.epochs
    class_prior: Prior = FitSettings.class_prior
    seed: Annotated[int, Field(ge=0, le=cli.MAX_SEED)] = 0
    """Seed of weights, batches and validation examples."""
    quiet: bool = False
    """Only the summary, no line for each epoch."""
    overwrite: bool = False
    """Replace the file of --out if there is one."""

    def __post_init__(self):
        super().__post_init__()
        _check_input("--data", self.data, "an .npz file with " + KEYS)
        _check_output(self.out, (".keras",), self.overwrite)

    def run(self):
        """Trains, saves the model and prints a summary."""
        from gar_keras.classification import fit
        from gar_keras.classification import saved
        from gar_keras.utils.warnings import shown_by

        x, labels = read_partly_labeled(self.data)
        names, y = _names(labels)
        found = int(y.max(initial=-1)) + 1
        num_classes = found if self.num_classes is None else self.num_classes
        fit.check_every_class(y[y != fit.UNLABELED], num_classes)
        _check_some_unlabeled(y)
        warnings = []

        def show(text):
            warnings.append(text)
            print(f"warning: {text}", file=sys.stderr, flush=True)

        print(_counts(y, num_classes, names), flush=True)
        if self.num_classes is None and names is None:
            print(FOUND, flush=True)
        with fit.seeded(self.seed):
            model = fit.default_network(x, num_classes, self.precision)
        with shown_by(show):
            summary = fit.fit(
                model,
                x,
                y,
                FitSettings.of(self),
                class_names=names,
                seed=self.seed,
                verbose=0 if self.quiet else 2,
            )
        saved.save(fit.for_prediction(model), self.out, names)
        print("\n".join(_lines(summary, warnings)))
        print(f"wrote {self.out}")


@dataclass(frozen=True)
class Predict:
    """Classify examples with a model that fit has written.

    The .npz file of --data holds x: examples of the same form, dtype and scale
    as those that the model was fitted to.
    """

    model: File = None
    """The .keras file that fit has written. Needed."""
    data: File = None
    """The .npz file with x. Needed."""
    out: File = None
    """The file to write. A .csv file has a line for each example, with its
    index, its class and the probability of that; an .npz file has the arrays
    y (m,) and probabilities (m, n), and classes (n,) where the model has names
    of them, which y has then. Needed."""
    overwrite: bool = False
    """Replace the file of --out if there is one."""

    def __post_init__(self):
        _check_input("--model", self.model, "a .keras file")
        _check_input("--data", self.data, "an .npz file with x")
        _check_output(self.out, (".csv", ".npz"), self.overwrite)

    def run(self):
        """Predicts and writes the file."""
        from gar_keras.classification import fit
        from gar_keras.classification import saved

        x = fit.as_input(read_arrays(self.data, [("x",)])["x"])
        model = read_model(self.model)
        (tensor,) = model.inputs
        fit.check_same_kind(x, tensor.shape[1:], tensor.dtype)
        logits = fit.predict_logits(model, x)
        probabilities = softmax(logits)
        classes = np.argmax(logits, axis=1)
        names = saved.class_names(self.model)
        if self.out.suffix == ".npz":
            arrays = {"y": classes, "probabilities": probabilities}
            if names is not None:
                arrays |= {"y": np.array(names)[classes], "classes": names}
            _write(self.out, lambda path: np.savez_compressed(path, **arrays))
        else:
            _write(
                self.out,
                lambda path: _write_csv(path, classes, probabilities, names),
            )
        counts = np.bincount(classes, minlength=logits.shape[1])
        print(f"examples of each class: {_by_class(counts, names)}")
        print(f"wrote {self.out}")


COMMANDS = {"fit": Fit, "predict": Predict}


def main():
    """Runs the command that the command line names."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name in ("-h", "--help"):
        _help()
    if name not in COMMANDS:
        cli.fail(
            "give a command: fit or predict, e.g. python -m gar_keras fit "
            f"--help. Received: {name or 'none'}"
        )
    sys.argv = [f"python -m gar_keras {name}", *sys.argv[2:]]
    try:
        command = cli.parse(COMMANDS[name])
        load_keras()
        command.run()
    except (ValueError, FloatingPointError, OSError, MemoryError) as e:
        cli.fail(e)
    except KeyboardInterrupt:
        print("interrupted: nothing was written", file=sys.stderr)
        return cli.EXIT_INTERRUPTED
    return 0


def read_partly_labeled(path):
    """Examples and labels of an .npz file, in either of the two forms.

    Returns:
        `(x, y)`: examples as `fitting.as_input` gives them, and labels `(m,)`:
        int64 class indices with -1 for unlabelled examples, or strings with
        `"-1"` or `""` for them.

    Raises:
        ValueError: if the file is not readable, or does not hold them.
    """
    from gar_keras.classification import fit
    from gar_keras.utils.validation import check_images
    from gar_keras.utils.validation import check_labels

    forms = [("x", "y"), ("x_labeled", "y_labeled", "x_unlabeled")]
    arrays = read_arrays(path, forms)
    if "x" in arrays:
        x = fit.as_input(arrays["x"])
        # They begin at -1, the marker; as class indices they must not.
        y = np.asarray(arrays["y"])
        if y.dtype.kind == "U":
            return x, _check_names("y", y, len(x))
        if y.dtype.kind != "i":
            return x, check_labels("y", y, len(x))
        if y.size and y.min() < fit.UNLABELED:
            raise ValueError(
                "y must be class indices from 0, or -1 for unlabelled "
                f"examples. Received: least label={y.min()}"
            )
        y = y.astype("int64")
        return x, check_labels("y", y + 1, len(x)) - 1
    x_labeled = fit.as_input(arrays["x_labeled"], "x_labeled")
    x_unlabeled = fit.as_input(arrays["x_unlabeled"], "x_unlabeled")
    check_images("x_unlabeled", x_unlabeled, ("x_labeled", x_labeled))
    y = arrays["y_labeled"]
    marker = fit.UNLABELED
    if y.dtype.kind == "U":
        y = _check_names("y_labeled", y, len(x_labeled))
        marker = str(marker)
    else:
        y = check_labels("y_labeled", y, len(x_labeled))
    none = np.full(len(x_unlabeled), marker)
    return np.concatenate([x_labeled, x_unlabeled]), np.concatenate([y, none])


def _check_names(name, y, num_examples):
    """Returns names of classes `(num_examples,)`, or raises."""
    if y.shape != (num_examples,):
        raise ValueError(
            f"{name} must be names of classes, one for each of the "
            f"{num_examples} examples. Received: shape={y.shape}"
        )
    return y


def _names(labels):
    """The names of the classes or `None`, and their indices in `labels`."""
    from gar_keras.classification import fit

    if labels.dtype.kind != "U":
        return None, labels
    names, y = fit.encode(labels)
    return names.tolist(), y


def read_arrays(path, forms):
    """The arrays of an .npz file that make up one of several forms.

    Args:
        path: The file.
        forms: Tuples of names; the file must hold all of exactly one tuple.

    Returns:
        A dict of arrays by name.

    Raises:
        ValueError: if the file is not readable, or does not hold them.
    """
    try:
        # Opened here: NumPy leaves what it cannot read open.
        with (
            open(path, "rb") as file,
            np.load(file, allow_pickle=False) as archive,
        ):
            names = set(archive.files)
            found = [form for form in forms if names.issuperset(form)]
            if len(found) == 1:
                return {name: archive[name] for name in found[0]}
    except NPZ_DAMAGE as e:
        raise ValueError(
            f"{path} is not readable as an .npz file of plain arrays. Write "
            f"it with np.savez. ({e})"
        ) from e
    wanted = ", or ".join(" and ".join(form) for form in forms)
    raise ValueError(
        f"{path} must hold the arrays {wanted}"
        f"{'' if not found else ', and not both'}. Received: "
        f"{', '.join(sorted(names)) or 'none'}"
    )


def read_model(path):
    """The model of a .keras file, which must give logits.

    Raises:
        ValueError: if the file holds no such model.
    """
    import keras

    # What a saved model may hold has to be known by name.
    import gar_keras.layers  # noqa: F401
    from gar_keras.models import check_linear
    from gar_keras.models import has_graph
    from gar_keras.regularizers import check_logits_shape

    try:
        model = keras.saving.load_model(path, compile=False)
    # Whatever is wrong in the file, Keras raises anything.
    except Exception as e:
        raise ValueError(
            f"{path} is no Keras model that can be loaded: make it with "
            f"python -m gar_keras fit. ({e})"
        ) from e
    if not has_graph(model) or len(model.inputs) != 1:
        raise ValueError(
            f"{path} must hold a model of one input whose layers Keras knows, "
            "as python -m gar_keras fit makes it."
        )
    check_linear(model)
    check_logits_shape(model.outputs[0].shape)
    return model


def _help():
    commands = [
        Annotated[command, tyro.conf.subcommand(name)]
        for name, command in COMMANDS.items()
    ]
    tyro.cli(
        commands[0] | commands[1],
        prog="python -m gar_keras",
        description=__doc__,
        args=["--help"],
    )


def _check_input(option, path, what):
    if path is None:
        raise ValueError(f"{option} is needed: {what}")
    if not path.is_file():
        raise ValueError(f"{option} takes {what}. No such file: {path}")


def _check_output(path, suffixes, overwrite):
    allowed = " or ".join(suffixes)
    if path is None:
        raise ValueError(f"--out is needed: the {allowed} file to write")
    cli.check_output("--out", path, suffixes)
    if path.exists() and not overwrite:
        raise ValueError(
            f"--out names a file that is there already: {path}. Choose "
            "another one, or replace it with --overwrite."
        )
    _check_writable(path.parent)


def _check_writable(folder):
    """Raises unless a file can be made in the folder."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as e:
        raise ValueError(
            "--out is in a folder in which nothing can be written. Received: "
            f"{folder} ({e.strerror}). Choose another one."
        ) from e


def _check_some_unlabeled(y):
    """Raises unless an example is unlabelled."""
    if (y >= 0).all():
        raise ValueError(
            "No example is unlabelled, and GAR learns from those. Received: "
            f"{len(y)} examples, each with a label. Mark unlabelled ones with "
            "-1 in y, or give them as x_unlabeled."
        )


def _write(path, save):
    """Writes a file in a whole; the writers look at the suffix."""
    with replacing(path, path.suffix) as temporary:
        save(temporary)


def _write_csv(path, classes, probabilities, names):
    with open(path, "w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(["index", "class", "probability"])
        for i, c in enumerate(classes):
            label = c if names is None else names[c]
            lines.writerow([i, label, f"{probabilities[i, c]:.6g}"])


def _counts(y, num_classes, names):
    counts = np.bincount(y[y >= 0], minlength=num_classes)
    return (
        f"examples: {len(y)}, labelled: {counts.sum()} "
        f"({_by_class(counts, names)} of the {num_classes} classes)"
    )


def _by_class(counts, names):
    """Counts as text, each with the name of its class if there are names."""
    if names is None:
        return ", ".join(map(str, counts))
    return ", ".join(f"{n} {c}" for n, c in zip(names, counts, strict=True))


def _lines(summary, warnings):
    """A summary of `fit` as lines of text."""
    prior = summary.class_prior
    shares = prior and ", ".join(f"{share:.3g}" for share in prior)
    yield (
        f"trained on: {summary.num_labeled} labelled, "
        f"{summary.num_unlabeled} unlabelled; validation: "
        f"{summary.num_validation}"
    )
    yield f"class prior: {shares or 'uniform'}"
    yield str(summary)
    if not summary.num_validation:
        yield (
            "--validation-fraction 0.2 keeps a fifth of the labels back, to "
            "measure the error on"
        )
    yield f"warnings: {len(warnings)}{', shown above' if warnings else ''}"
