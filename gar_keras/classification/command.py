"""GAR on your own images or features, from files or a folder of images.

Usage: python -m gar_keras {fit,predict} --help
"""

import contextlib
import csv
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro
from pydantic import Field

from gar_keras.classification import files
from gar_keras.classification.settings import PRIORS, FitSettings
from gar_keras.utils import cli
from gar_keras.utils.checked import (
    CountOrAuto,
    descriptions,
    prior_or,
    settings,
)
from gar_keras.utils.files import NPZ_DAMAGE, replacing
from gar_keras.utils.loading import load_keras
from gar_keras.utils.softmax import softmax

KEYS = "x and y, or x_labeled, y_labeled and x_unlabeled"

DATA = "an .npy or .csv file, or a folder of images"

FOUND = (
    "number of classes: the largest label plus 1; state it with --num-classes "
    "to be sure that none is missing"
)

File = Annotated[Path | None, cli.one_value(Path, "a file", "FILE")]
Data = Annotated[
    Path | None, cli.one_value(Path, "a file or folder", "FILE|DIR")
]


def _size(text):
    """Height and width from text such as `32` or `28x32`."""
    sides = [int(side) for side in text.split("x")]
    if len(sides) > 2 or min(sides) < 1:
        raise ValueError
    return sides[0], sides[-1]


Size = Annotated[
    tuple[int, int] | None,
    cli.one_value(_size, "a size, e.g. 32 or 28x32", "HEIGHTxWIDTH"),
]


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

    data: Data = None
    """The file, or the folder of images. Required."""
    out: File = None
    """The .keras file to write: plain Keras, from examples as they are in
    --data to logits. Required."""


@settings
class Fit(FitSettings, _Files):
    """Train a network on few labels and on many examples without any.

    --data is one of these. An .npz file with either x and y, or x_labeled,
    y_labeled and x_unlabeled. An .npy file of x, with --labels an .npy file of
    y. A .csv file with a header, a column label and else columns of numbers,
    the features. A folder of images, also in folders below, with labels.csv in
    it, whose columns are file and label.

    Examples are images (m, h, w) or (m, h, w, c), uint8 or of a scale of your
    own, or features (m, f). Labels are class indices from 0, and in y -1 for
    unlabelled examples; or strings, the names of the classes, and in y "" or
    "-1". In a .csv file they are names, empty or -1 for unlabelled examples;
    images that labels.csv does not have are unlabelled. The names are kept in
    the file of --out.

    If training is interrupted (Ctrl-C) or fails after stage 1, the model is
    written as it is: with the weights of the epoch of least validation error
    where there are validation examples.
    """

    labels: File = None
    """The labels: an .npy file for an .npy file, a .csv file for a folder; by
    default labels.csv in the folder."""
    image_size: Size = None
    """Size that the images of a folder are brought to, if they are not all of
    one size."""

    num_classes: Annotated[int, Field(ge=2)] | None = None
    """n, the number of classes, each of which needs a label; by default the
    largest label plus 1."""
    epochs: Epochs = FitSettings.epochs
    class_prior: Prior = FitSettings.class_prior
    seed: Annotated[int, Field(ge=0, le=cli.MAX_SEED)] = 0
    """Seed of weights, batches and validation examples."""
    quiet: bool = False
    """Only the summary, no progress."""
    overwrite: bool = False
    """Replace the file of --out if there is one."""

    def __post_init__(self):
        super().__post_init__()
        _check_data(self.data, f"an .npz file with {KEYS}, {DATA}")
        if self.labels is not None:
            _check_input("--labels", self.labels, "an .npy or .csv file")
        _check_output(self.out, (".keras",), self.overwrite)

    def run(self):
        """Trains, saves the model and prints a summary."""
        from gar_keras.classification import fit, saved

        x, labels = read_partly_labeled(self.data, self.labels, self.image_size)
        is_table = self.data.suffix == ".csv"
        features = files.feature_names(self.data) if is_table else None
        names, y = _names(labels)
        n = self._num_classes(y)
        print(_counts(y, n, names), flush=True)
        if self.num_classes is None and names is None:
            print(FOUND, flush=True)
        with fit.seeded(self.seed):
            model = fit.default_network(x, n, self.precision)

        def save():
            plain = fit.for_prediction(model)
            saved.save(plain, self.out, names, features)

        summary, warnings = self._train(model, x, y, names, save)
        save()
        print("\n".join(_lines(summary, warnings, names)))
        print(f"wrote {self.out}")

    def _num_classes(self, y):
        """n, once the labels are seen to be enough of them."""
        from gar_keras.classification import fit

        found = int(y.max(initial=-1)) + 1
        n = found if self.num_classes is None else self.num_classes
        fit.check_every_class(y[y != fit.UNLABELED], n)
        _check_some_unlabeled(y)
        return n

    def _train(self, model, x, y, names, save):
        """`(summary, warnings)`; what ends early after stage 1 is saved."""
        from gar_keras.classification import fit
        from gar_keras.utils.progress import Reporter
        from gar_keras.utils.warnings import shown_by

        warnings = []

        def show(text):
            warnings.append(text)
            print(f"warning: {text}", file=sys.stderr, flush=True)

        progress = fit.Progress()
        try:
            with shown_by(show), contextlib.ExitStack() as stack:
                if not self.quiet:
                    progress.reporter = stack.enter_context(
                        Reporter(self.out.name)
                    )
                summary = fit.fit(
                    model,
                    x,
                    y,
                    FitSettings.of(self),
                    class_names=names,
                    seed=self.seed,
                    reporter=progress,
                )
        # Ctrl-C, too.
        except BaseException as e:
            if progress.stage_1_is_done:
                save()
                e.add_note(f"Wrote {self.out} after {progress}.")
            raise
        return summary, warnings


@dataclass(frozen=True)
class Predict:
    """Classify examples with a model that fit has written.

    --data has examples of the same form, dtype and scale as those that the
    model was fitted to: an .npz file with x, an .npy or .csv file, or a folder
    of images, which are brought to the size of those. Of a .csv file, a model
    that was fitted to one takes the columns of the same names, in any order,
    and no others; else a column label plays no part.
    """

    model: File = None
    """The .keras file that fit has written. Required."""
    data: Data = None
    """The file with the examples, or the folder of images. Required."""
    out: File = None
    """The file to write. A .csv file has a line for each example, with its
    index (or the file of an image), its class and the probability of that, and
    with --probabilities that of each class; an .npz file has the arrays
    y (m,) and probabilities (m, n), and classes (n,) where the model has names
    of them, which y has then. Required."""
    probabilities: bool = False
    """Write the probability of each class into a .csv file."""
    overwrite: bool = False
    """Replace the file of --out if there is one."""

    def __post_init__(self):
        _check_input("--model", self.model, "a .keras file")
        _check_data(self.data, f"an .npz file with x, {DATA}")
        _check_output(self.out, (".csv", ".npz"), self.overwrite)

    def run(self):
        """Predicts and writes the file."""
        from gar_keras.classification import fit, saved

        model = read_model(self.model)
        (tensor,) = model.inputs
        features = saved.feature_names(self.model)
        x, ids = read_examples(self.data, tensor.shape[1:], features)
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
                lambda path: _write_csv(
                    path,
                    classes,
                    probabilities,
                    names,
                    ids,
                    self.probabilities,
                ),
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
        cli.fail(" ".join([str(e), *_notes(e)]))
    except KeyboardInterrupt as e:
        found = " ".join(_notes(e)) or "nothing was written"
        print(f"interrupted: {found}", file=sys.stderr)
        return cli.EXIT_INTERRUPTED
    return 0


def _notes(error):
    """What was added to an exception on its way: what became of the model."""
    return getattr(error, "__notes__", ())


def read_partly_labeled(path, labels=None, image_size=None):
    """Examples and labels of a file or folder, of which some have none.

    Args:
        path: What `--data` names.
        labels: The file of labels, if it is another one.
        image_size: `(height, width)` that images of a folder are brought to.

    Returns:
        `(x, y)`: examples as `fitting.as_input` gives them, and labels `(m,)`:
        int64 class indices with -1 for unlabelled examples, or strings with
        `"-1"` or `""` for them.

    Raises:
        ValueError: if a file is not readable, or does not hold them.
    """
    from gar_keras.classification import fit

    if labels is not None and not (path.is_dir() or path.suffix == ".npy"):
        raise ValueError(
            "--labels is for a folder of images or an .npy file in --data. "
            f"Received: --data {path}, which has its labels itself"
        )
    if image_size is not None and not path.is_dir():
        raise ValueError(
            "--image-size is for a folder of images in --data. Received: "
            f"--data {path}"
        )
    if path.is_dir():
        labels = labels or path / files.LABELS
        _check_input("--labels", labels, "a .csv file")
        x, names = files.read_images(path, image_size)
        return x, files.read_image_labels(labels, names)
    if path.suffix == ".csv":
        x, y = files.read_table(path)
        if y is None:
            raise ValueError(
                f"{path} must have a column {files.LABEL}. Received: "
                f"{', '.join(files.feature_names(path))}. Add it, empty where "
                "there is no label."
            )
        return fit.as_input(x), y
    if path.suffix == ".npy":
        if labels is None:
            raise ValueError(
                "--labels is needed beside an .npy file in --data: the .npy "
                "file of its labels"
            )
        x = fit.as_input(files.read_npy(path))
        return x, _checked_labels(np.array(files.read_npy(labels)), len(x))
    return _read_npz(path)


def read_examples(path, shape, features=None):
    """Examples of a file or folder, and what tells one from another.

    Args:
        path: What `--data` names.
        shape: The shape of the examples that a model takes.
        features: The columns that it takes of a table, or `None` for all.

    Returns:
        `(x, ids)`: examples as `fitting.as_input` gives them or an image
        source, and the files of images, or `None` for others.

    Raises:
        ValueError: if a file is not readable, or does not hold them.
    """
    from gar_keras.classification import fit

    if path.is_dir():
        if len(shape) != 3:
            raise ValueError(
                "--data must have examples like those of fit, of shape "
                f"{tuple(shape)}. Received: {path}, a folder of images"
            )
        return files.read_images(path, shape[:2], shape[2])
    if path.suffix == ".csv":
        x = files.read_table(path, features)[0]
    elif path.suffix == ".npy":
        x = files.read_npy(path)
    else:
        x = read_arrays(path, [("x",)])["x"]
    return fit.as_input(x), None


def _checked_labels(y, num_examples):
    """Returns labels of which some mark unlabelled examples, or raises."""
    from gar_keras.classification import fit
    from gar_keras.utils.validation import check_labels

    if y.dtype.kind == "U":
        return _check_names("y", y, num_examples)
    if y.dtype.kind != "i":
        return check_labels("y", y, num_examples)
    # They begin at -1, the marker; as class indices they must not.
    if y.size and y.min() < fit.UNLABELED:
        raise ValueError(
            "y must be class indices from 0, or -1 for unlabelled "
            f"examples. Received: least label={y.min()}"
        )
    y = y.astype("int64")
    return check_labels("y", y + 1, num_examples) - 1


def _read_npz(path):
    """The same of an .npz file, in either of its two forms."""
    from gar_keras.classification import fit
    from gar_keras.utils.validation import check_images, check_labels

    forms = [("x", "y"), ("x_labeled", "y_labeled", "x_unlabeled")]
    arrays = read_arrays(path, forms)
    if "x" in arrays:
        x = fit.as_input(arrays["x"])
        return x, _checked_labels(arrays["y"], len(x))
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
    from gar_keras.models import check_linear, has_graph
    from gar_keras.regularizers import check_logits_shape

    try:
        model = keras.saving.load_model(path, compile=False)
    # Whatever is wrong in the file, Keras raises anything.
    except Exception as e:
        raise ValueError(
            f"{path} is not a Keras model that can be loaded: make it with "
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


def _check_data(path, what):
    """Raises unless `--data` is a folder, or a file with a known ending."""
    if path is not None and path.is_dir():
        return
    _check_input("--data", path, what)
    if path.suffix not in files.SUFFIXES:
        raise ValueError(f"--data takes {what}. Received: {path}")


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
            "-1 in y (with an empty label in a .csv file), or give them as "
            "x_unlabeled."
        )


def _write(path, save):
    """Writes a file in a whole; the writers look at the suffix."""
    with replacing(path, path.suffix) as temporary:
        save(temporary)


def _write_csv(path, classes, probabilities, names, ids, with_each):
    """A line for each example.

    Args:
        path: Path of the file.
        classes: Index of the class of each example.
        probabilities: Those of every class.
        names: The names of the classes, or `None`.
        ids: The files of the examples, or `None`.
        with_each: Whether to write the probability of every class.
    """
    names = range(probabilities.shape[1]) if names is None else names
    with open(path, "w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        header = [
            "index" if ids is None else files.FILE,
            "class",
            "probability",
        ]
        each = [f"p({name})" for name in names] if with_each else []
        lines.writerow([*header, *each])
        for i, c in enumerate(classes):
            row = [f"{p:.6g}" for p in probabilities[i]]
            lines.writerow(
                [i if ids is None else ids[i], names[c], row[c]]
                + (row if with_each else [])
            )


def _counts(y, num_classes, names):
    counts = np.bincount(y[y >= 0], minlength=num_classes)
    return (
        f"examples: {len(y)}, labelled: {counts.sum()} "
        f"({_by_class(counts, names)} of the {num_classes} classes)"
    )


def _by_class(counts, names):
    """Numbers as text, each with the name of its class if there are names."""
    if names is None:
        return ", ".join(map(str, counts))
    return ", ".join(f"{n} {c}" for n, c in zip(names, counts, strict=True))


def _lines(summary, warnings, names):
    """A summary of `fit` as lines of text."""
    prior = summary.class_prior
    shares = prior and _by_class([f"{share:.3g}" for share in prior], names)
    yield (
        f"trained on: {summary.num_labeled} labelled, "
        f"{summary.num_unlabeled} unlabelled; validation: "
        f"{summary.num_validation}"
    )
    yield f"class prior: {shares or 'uniform'}"
    yield str(summary)
    if not summary.num_validation:
        yield (
            "--validation-fraction 0.2 holds out a fifth of the labels, to "
            "measure the error on"
        )
    yield f"warnings: {len(warnings)}{', shown above' if warnings else ''}"
