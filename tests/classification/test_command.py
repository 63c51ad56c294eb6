"""`python -m gar_keras`: fit and predict, from files to files."""

import csv
import re
import subprocess
import sys

import keras
import numpy as np
import pytest

from gar_keras.classification import command as program
from gar_keras.classification import fit as fitting
from gar_keras.classification import saved
from gar_keras.methods.base import Method
from gar_keras.utils.checked import descriptions
from gar_keras.utils.validation import is_in_memory
from gar_keras.utils.warnings import warn


def blobs(m, seed=0):
    """Features around three corners, and their classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(m) % 3
    corners = np.array([[0.0, 40.0], [40.0, 0.0], [-30.0, -30.0]])
    return corners[y] + 8 * rng.normal(size=(m, 2)), y


X, Y = blobs(90)
FEW = np.where(np.arange(90) < 30, Y, -1)
SHORT = "--pretrain-epochs 20 --epochs 2 --precision float32 --quiet".split()


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs a command line; returns its status, its output and its errors."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["__main__.py", *map(str, words)])
        try:
            status = program.main()
        except SystemExit as e:
            status = e.code
        return status, *capsys.readouterr()

    return run


def error_of(outcome):
    """The message of a command that was refused, in one line."""
    status, output, errors = outcome
    assert status == 2
    assert output == ""
    (line,) = errors.splitlines()
    assert line.startswith("error: ")
    return line


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("main")
    np.savez(folder / "data.npz", x=X, y=FEW)
    np.savez(folder / "new.npz", x=blobs(30, seed=1)[0])
    return folder


@pytest.fixture(scope="module")
def fitted(folder):
    """What fit prints; the model is in the folder."""
    words = [
        sys.executable, "-m", "gar_keras", "fit", "--data", folder / "data.npz",
        "--out", folder / "model.keras", "--validation-fraction", "0.2", *SHORT,
    ]  # fmt: skip
    return subprocess.run(words, capture_output=True, text=True)


# What comes of it


@pytest.mark.slow
def test_fit_prints_a_summary(fitted, folder):
    assert fitted.returncode == 0, fitted.stderr[-2000:]
    lines = fitted.stdout.splitlines()
    assert lines[:4] == [
        "examples: 90, labelled: 30 (10, 10, 10 of the 3 classes)",
        program.FOUND,
        "trained on: 24 labelled, 60 unlabelled; validation: 6",
        "class prior: uniform",
    ]
    assert re.fullmatch(
        r"validation error: \d+\.\d\d % -> \d+\.\d\d %; epochs of stage 2: 2; "
        "classes lost: none",
        lines[4],
    )
    assert lines[5:] == ["warnings: 0", f"wrote {folder / 'model.keras'}"]
    assert not list(folder.glob(".*"))


@pytest.mark.slow
def test_fitted_model_is_plain_keras(fitted, folder):
    done = subprocess.run(
        [
            sys.executable, "-c",
            "import keras, sys; keras.saving.load_model(sys.argv[1]);"
            "assert 'gar_keras' not in sys.modules",
            folder / "model.keras",
        ],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.slow
def test_predictions_as_csv_and_npz_agree(fitted, folder, run):
    words = ["--model", folder / "model.keras", "--data", folder / "new.npz"]
    counts = []
    for name in ("p.csv", "p.npz"):
        status, output, _ = run("predict", *words, "--out", folder / name)
        assert status == 0
        counts.append(output.splitlines()[0])
    with np.load(folder / "p.npz") as archive:
        y, probabilities = archive["y"], archive["probabilities"]
    assert np.mean(y == blobs(30, seed=1)[1]) > 0.9
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_array_equal(probabilities.argmax(axis=1), y)
    assert (
        counts
        == ["examples of each class: " + ", ".join(map(str, np.bincount(y)))]
        * 2
    )
    header, *lines = (folder / "p.csv").read_text().splitlines()
    assert header == "index,class,probability"
    table = np.array([line.split(",") for line in lines], float)
    np.testing.assert_array_equal(table[:, 0], np.arange(30))
    np.testing.assert_array_equal(table[:, 1], y)
    np.testing.assert_allclose(
        table[:, 2], probabilities.max(axis=1), rtol=1e-5
    )


def test_both_forms_of_the_data_are_the_same(tmp_path):
    np.savez(tmp_path / "a.npz", x=X, y=FEW, x_test=X)
    np.savez(
        tmp_path / "b.npz", x_labeled=X[:30], y_labeled=Y[:30].astype("uint8"),
        x_unlabeled=X[30:],
    )  # fmt: skip
    forms = [
        program.read_partly_labeled(tmp_path / name)
        for name in ("a.npz", "b.npz")
    ]
    for ours, theirs in zip(*forms, strict=True):
        np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype
    assert forms[0][0].dtype == "float32"


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8"])
def test_labels_of_any_integers(tmp_path, dtype):
    y = np.full(90, 127)
    y[:3] = [0, 1, 5]
    np.savez(tmp_path / "a.npz", x=X, y=y.astype(dtype))
    np.testing.assert_array_equal(
        program.read_partly_labeled(tmp_path / "a.npz")[1], y
    )


NAMES = np.array(["cat", "dog", "sea, otter"])


def as_names(folder):
    """A file in each of the two forms, with names of the classes."""
    np.savez(folder / "a.npz", x=X, y=np.where(FEW < 0, "", NAMES[FEW]))
    np.savez(
        folder / "b.npz", x_labeled=X[:30], y_labeled=NAMES[Y[:30]],
        x_unlabeled=X[30:],
    )  # fmt: skip
    return folder / "a.npz", folder / "b.npz"


def test_names_of_classes_in_both_forms(tmp_path):
    for path in as_names(tmp_path):
        names, y = program._names(program.read_partly_labeled(path)[1])
        assert names == NAMES.tolist()
        np.testing.assert_array_equal(y, FEW)


@pytest.mark.slow
def test_names_of_classes_go_from_fit_to_predict(
    folder, run, monkeypatch, tmp_path
):
    for owner, stage in ((fitting, "pretrain"), (Method, "train")):
        monkeypatch.setattr(
            owner, stage, lambda *_, **__: keras.callbacks.History()
        )
    model, new = tmp_path / "m.keras", folder / "new.npz"
    status, output, _ = run(
        "fit", "--data", as_names(tmp_path)[0], "--out", model,
        "--class-prior", "0.5,0.25,0.25",
    )  # fmt: skip
    assert status == 0
    assert "\nclass prior: cat 0.5, dog 0.25, sea, otter 0.25\n" in output
    assert output.startswith(
        "examples: 90, labelled: 30 (cat 10, dog 10, sea, otter 10 of the 3 "
        "classes)\ntrained on"
    )
    for out in ("p.csv", "p.npz"):
        words = ["--data", new, "--out", tmp_path / out]
        assert run("predict", "--model", model, *words)[0] == 0
    with np.load(tmp_path / "p.npz") as archive:
        np.testing.assert_array_equal(archive["classes"], NAMES)
        expected = NAMES[archive["probabilities"].argmax(axis=1)]
        np.testing.assert_array_equal(archive["y"], expected)
    with open(tmp_path / "p.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["class"] for row in rows] == expected.tolist()


# Other files, and folders of images


@pytest.mark.slow
def test_columns_of_a_table_are_taken_by_name(run, monkeypatch, tmp_path):
    monkeypatch.setattr(fitting, "default_network", tiny)
    for owner, stage in ((fitting, "pretrain"), (Method, "train")):
        monkeypatch.setattr(
            owner, stage, lambda *_, **__: keras.callbacks.History()
        )
    tables = {
        "fit": "width,label,height\n1,a,2\n3,b,-4\n500,,6\n",
        "same": "width,height\n500,6\n-7,800\n",
        "other": "note,height,label,width\nx,6,a,500\ny,800,,-7\n",
        "less": "height,depth\n6,500\n",
        "bare": "500,6\n-7,800\n",
    }
    for name, text in tables.items():
        (tmp_path / f"{name}.csv").write_text(text)
    model = ["--model", tmp_path / "m.keras"]
    words = ["--data", tmp_path / "fit.csv", "--out", tmp_path / "m.keras"]
    assert run("fit", *words)[0] == 0

    def predict(name):
        words = ["--data", tmp_path / f"{name}.csv", "--out"]
        return run("predict", *model, *words, tmp_path / f"{name}.npz")

    probabilities = []
    for name in ("same", "other"):
        assert predict(name)[0] == 0
        with np.load(tmp_path / f"{name}.npz") as archive:
            probabilities.append(archive["probabilities"])
    np.testing.assert_array_equal(*probabilities)
    message = r"width, height. Received: height, depth; missing: width$"
    assert re.search(message, error_of(predict("less")))
    assert "missing: width, height" in error_of(predict("bare"))


def tiny(x, num_classes, precision):
    """A network that is made and trained at once."""
    source = keras.Input(x.shape[1:], dtype=str(x.dtype))
    x = keras.layers.Rescaling(1 / 255)(source)
    x = keras.layers.Dense(num_classes)(keras.layers.Flatten()(x))
    return keras.Model(source, x)


@pytest.mark.slow
def test_a_folder_of_images_from_fit_to_predictions(run, monkeypatch, tmp_path):
    tf = pytest.importorskip("tensorflow")
    monkeypatch.setattr(fitting, "default_network", tiny)
    for i in range(12):
        image = np.full((4, 4, 1), 255 * (i % 2), "uint8")
        path = str(tmp_path / f"{i:02}.png")
        tf.io.write_file(path, tf.io.encode_png(image))
    (tmp_path / "labels.csv").write_text(
        "file,label\n00.png,black\n01.png,white\n02.png,black\n03.png,white\n"
    )
    status, output, errors = run(
        "fit", "--data", tmp_path, "--out", tmp_path / "m.keras",
        *"--pretrain-epochs 200 --epochs 1".split(),
    )  # fmt: skip
    assert (status, errors) == (0, "")
    assert "examples: 12, labelled: 4 (black 2, white 2 of the 2" in output
    assert re.search(r"m.keras pretraining 200/200  loss .*\d s$", output, re.M)
    assert re.search(r"m.keras regularization 1/1 ", output)
    status, output, errors = run(
        "predict", "--model", tmp_path / "m.keras", "--data", tmp_path,
        "--out", tmp_path / "p.csv", "--probabilities",
    )  # fmt: skip
    assert (status, errors) == (0, "")
    header, *lines = (tmp_path / "p.csv").read_text().splitlines()
    assert header == "file,class,probability,p(black),p(white)"
    assert len(lines) == 12
    for i, line in enumerate(lines):
        file, name, largest, black, white = line.split(",")
        assert file == f"{i:02}.png"
        assert name == ("white" if i % 2 else "black")
        assert largest == (white if i % 2 else black)
        assert abs(float(black) + float(white) - 1) < 1e-5


def test_npy_and_csv_files_are_as_an_npz_file(tmp_path):
    x = X.astype("float32")
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", FEW)
    lines = ["a,label,b"]
    lines += [
        f"{a!r},{'' if y < 0 else y},{b!r}"
        for (a, b), y in zip(x.tolist(), FEW, strict=True)
    ]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    table, names = program.read_partly_labeled(tmp_path / "t.csv")
    array, y = program.read_partly_labeled(
        tmp_path / "x.npy", tmp_path / "y.npy"
    )
    np.testing.assert_array_equal(table, x)
    np.testing.assert_array_equal(array, x)
    np.testing.assert_array_equal(y, FEW)
    np.testing.assert_array_equal(fitting.encode(names)[1], FEW)
    for name in ("x.npy", "t.csv"):
        examples, ids = program.read_examples(tmp_path / name, (2,))
        np.testing.assert_array_equal(examples, x)
        assert ids is None


def test_images_of_an_npy_file_are_not_read_at_once(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((90, 5, 5), "uint8"))
    np.save(tmp_path / "y.npy", FEW)
    x, _ = program.read_partly_labeled(tmp_path / "x.npy", tmp_path / "y.npy")
    assert x.shape == (90, 5, 5, 1)
    assert not is_in_memory(x)


@pytest.mark.parametrize(
    "name, words, message",
    [
        ("x.npy", [], "--labels is needed beside an .npy"),
        ("data.npz", ["--labels", "x.npy"], "--labels is for a folder"),
        ("data.npz", ["--image-size", "8"], "--image-size is for a folder"),
        ("data.npz", ["--image-size", "8x"], "takes a size, e.g. 32 or 28x32"),
        ("", [], "--labels takes a .csv file. No such file: .*labels.csv"),
        ("t.csv", [], "must have a column label. Received: a, b. Add"),
        ("t.txt", [], "--data takes an .npz file .* Received: .*t.txt"),
    ],
)
def test_files_that_do_not_fit_together_are_refused(
    name, words, message, run, tmp_path
):
    np.save(tmp_path / "x.npy", X)
    np.savez(tmp_path / "data.npz", x=X, y=FEW)
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    (tmp_path / "t.txt").write_text("")
    if words[:1] == ["--labels"]:
        words = ["--labels", tmp_path / words[1]]
    outcome = run(
        "fit", "--data", tmp_path / name, "--out", tmp_path / "m.keras", *words
    )
    assert re.search(message, error_of(outcome))


def test_options_reach_the_fit(folder, run, monkeypatch, tmp_path):
    calls = []

    def fit(model, x, y, settings, *, class_names, seed, reporter):
        assert class_names is None
        calls.append((model, settings, seed, reporter.reporter.name))
        raise ValueError("seen enough")

    monkeypatch.setattr(fitting, "fit", fit)
    status, output, errors = run(
        "fit", "--data", folder / "data.npz", "--out", tmp_path / "m.keras",
        *"--num-classes 3".split(),
        *"--pretrain-epochs 7 --epochs 9 --labeled-per-batch 5".split(),
        *"--unlabeled-per-batch 11 --affinity 2 --balance 0.5".split(),
        *"--frobenius 0.25 --class-prior 0.5,0.25,0.25 --seed 3".split(),
        *"--validation-fraction 0.5 --learning-rate 0.125".split(),
        *"--supervised 1 --shift 2 --affine 0.25 --consistency 4".split(),
        *"--vat 0.5 --vat-radius 1.5 --average 0.875".split(),
        *"--precision bfloat16 --rate cosine --warmup-steps 6".split(),
        *"--global-clipnorm 0.5".split(),
    )  # fmt: skip
    # The classes are stated, not found.
    assert output.endswith("(10, 10, 10 of the 3 classes)\n")
    assert (status, errors) == (2, "error: seen enough\n")
    ((model, settings, seed, name),) = calls
    assert settings == fitting.FitSettings(
        pretrain_epochs=7, epochs=9, labeled_per_batch=5,
        unlabeled_per_batch=11, affinity=2.0, balance=0.5, frobenius=0.25,
        class_prior=(0.5, 0.25, 0.25), validation_fraction=0.5,
        learning_rate=0.125,
        supervised=1.0, shift=2, affine=0.25, consistency=4.0, vat=0.5,
        average=0.875, vat_radius=1.5, precision="bfloat16",
        rate="cosine", warmup_steps=6, global_clipnorm=0.5,
    )  # fmt: skip
    assert (seed, name) == (3, "m.keras")
    dtypes = {
        layer.compute_dtype
        for layer in model.layers
        if isinstance(layer, keras.layers.Dense)
    }
    assert dtypes == {"bfloat16", "float32"}
    assert not list(tmp_path.iterdir())


def test_epochs_auto_reach_the_fit(folder, run, monkeypatch, tmp_path):
    def fit(model, x, y, settings, **options):
        raise ValueError(f"epochs are {settings.epochs}")

    monkeypatch.setattr(fitting, "fit", fit)
    words = ["--epochs", "auto", "--validation-fraction", "0.2"]
    *_, errors = run(
        "fit", "--data", folder / "data.npz", "--out", tmp_path / "m.keras",
        *words,
    )  # fmt: skip
    assert errors == "error: epochs are auto\n"


def test_help_tells_the_defaults_and_texts_of_the_settings(run):
    status, output, _ = run("fit", "--help")
    assert status == 0
    text = " ".join(output.replace("│", " ").split())
    settings = fitting.FitSettings()
    for name, words in descriptions(fitting.FitSettings).items():
        assert f"--{name.replace('_', '-')} " in text
        default = getattr(settings, name)
        assert f"{words} (default: {default})" in text


def test_warnings_are_shown_and_counted(folder, run, monkeypatch, tmp_path):
    def train(*_, **__):
        warn("Classes are being lost.")
        return keras.callbacks.History()

    monkeypatch.setattr(fitting, "pretrain", train)
    monkeypatch.setattr(
        Method, "train", lambda *_, **__: keras.callbacks.History()
    )
    status, output, errors = run(
        "fit", "--data", folder / "data.npz", "--out", tmp_path / "m.keras"
    )
    assert status == 0
    assert errors == "warning: Classes are being lost.\n"
    assert "warnings: 1, shown above" in output.splitlines()
    assert "--validation-fraction 0.2 holds" in output


@pytest.mark.slow
def test_overwrite(fitted, folder, run, tmp_path):
    out = tmp_path / "p.csv"
    out.write_text("mine")
    words = [
        "predict", "--model", folder / "model.keras", "--data",
        folder / "new.npz", "--out", out,
    ]  # fmt: skip
    assert "there already" in error_of(run(*words))
    assert out.read_text() == "mine"
    assert run(*words, "--overwrite")[0] == 0
    assert out.read_text().startswith("index,class")


def test_interrupted_fit_leaves_nothing(folder, run, monkeypatch, tmp_path):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(fitting, "pretrain", interrupt)
    status, _, errors = run(
        "fit", "--data", folder / "data.npz", "--out", tmp_path / "m.keras"
    )
    assert (status, errors) == (130, "interrupted: nothing was written\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("error", "begun", "status", "message"),
    [
        (KeyboardInterrupt(), 2, 130, "interrupted: Wrote {out} after stage 1 "
         "and 2 of 9 epochs of stage 2.\n"),
        (FloatingPointError("It is NaN."), 0, 2,
         "error: It is NaN. Wrote {out} after stage 1.\n"),
    ],
)  # fmt: skip
def test_model_is_written_where_stage_2_ends_badly(
    error, begun, status, message, run, monkeypatch, tmp_path
):
    def train(*_, callbacks, **__):
        for epoch in range(begun):
            row = {"epoch": epoch + 1, "seconds": 1.0}
            callbacks[0].reporter.epoch("regularization", row, 9)
        raise error

    monkeypatch.setattr(Method, "train", train)
    names = np.where(FEW < 0, "", np.array(["a", "b", "c"])[FEW])
    np.savez(tmp_path / "data.npz", x=X, y=names)
    out = tmp_path / "m.keras"
    received = run("fit", "--data", tmp_path / "data.npz", "--out", out, *SHORT)
    assert (received[0], received[2]) == (status, message.format(out=out))
    assert saved.class_names(out) == ["a", "b", "c"]
    logits = keras.saving.load_model(out).predict(X[:30], verbose=0)
    assert np.mean(logits.argmax(axis=1) == Y[:30]) > 0.5


@pytest.mark.parametrize("command", ["fit", "predict"])
def test_folder_without_permission_is_refused_at_once(
    command, folder, run, monkeypatch, tmp_path
):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(program.tempfile, "TemporaryFile", refuse)
    names = {"fit": "m.keras", "predict": "p.csv"}
    words = ["--data", folder / "data.npz", "--out", tmp_path / names[command]]
    if command == "predict":
        words += ["--model", folder / "data.npz"]
    message = error_of(run(command, *words))
    assert f"Received: {tmp_path} (Permission denied)" in message
    assert "Choose another one" in message


def test_path_that_may_not_be_looked_at_is_refused(run, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied", "a.npz")

    monkeypatch.setattr(program.Path, "is_file", refuse)
    message = error_of(run("fit", "--data", "a.npz", "--out", "m.keras"))
    assert message.endswith("Permission denied: 'a.npz'")


# Help


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help(run, option):
    status, output, errors = run(option)
    assert (status, errors) == (0, "")
    assert "usage: python -m gar_keras [-h] {fit,predict}" in output
    assert "Train a network on few labels" in output


@pytest.mark.parametrize(
    "command, words",
    [
        ("fit", ["--class-prior", "x_labeled, y_labeled and", "--overwrite"]),
        ("predict", ["--model", "probability", "--overwrite"]),
    ],
)
def test_help_of_a_command(run, command, words):
    status, output, errors = run(command, "--help")
    assert (status, errors) == (0, "")
    assert output.startswith(f"usage: python -m gar_keras {command} [-h]")
    for word in words:
        assert word in output


# What is refused


@pytest.mark.parametrize(
    "words, message",
    [
        ([], "fit or predict.*Received: none"),
        (["train"], "fit or predict.*Received: train"),
        (["--data", "a.npz"], "fit or predict"),
        (["fit"], "--data is needed: an .npz file with x and y, or x_label"),
        (["predict"], "--model is needed"),
        (["fit", "--data"], "--data needs a value"),
        (["fit", "--label", "3"], "unknown option --label. Allowed: --data"),
        (["fit", "--data", "data.txt"], "No such file: data.txt"),
        (["fit", "--data", "gone.npz"], "No such file: gone.npz"),
        (["predict", "--model", "gone.keras"], "No such file: gone.keras"),
    ],
)
def test_bad_command_line_is_refused(run, words, message):
    assert re.search(message, error_of(run(*words)))


OPTIONS = {
    "--epochs 0": "--epochs must be an integer of at least 1, or 'auto'",
    "--epochs half": "--epochs takes a whole number or auto. Received: 'half'",
    "--epochs auto": "--epochs must be a number where no labels are kept back",
    "--pretrain-epochs 0": "--pretrain-epochs must be at least 1",
    "--labeled-per-batch 0": "--labeled-per-batch must be at least 1",
    "--num-classes 1": "--num-classes must be at least 2",
    "--num-classes 2": "from 0 to 1, for 2 classes. Received: largest label=2",
    "--num-classes 4": "Received: none of class 3. Label an example",
    "--vat-radius 0": "--vat-radius must be above 0",
    "--seed -1": "--seed must be at least 0",
    "--seed 4294967296": "--seed must be at most",
    "--affinity much": "--affinity takes a number. Received: 'much'",
    "--affinity -1": "--affinity must be at least 0",
    "--class-prior even": "--class-prior takes uniform, labeled or the shares",
    "--class-prior 0.5,0.6": "--class-prior must sum to 1",
    "--class-prior 0.5,0.5": "2 shares for 3 outputs",
    "--validation-fraction 1": "--validation-fraction must be below 1",
    "--average 1": "--average must be below 1",
    "--shift 1": "shift and affine move images",
    "--consistency 1": "both views of an image are the same",
    "--learning-rate 0": "--learning-rate must be above 0",
    "--precision half": "--precision takes auto, float32, bfloat16",
    "--out model.h5": "--out takes the name of a .keras file",
    "--out gone/model.keras": "a folder that is not there",
}


@pytest.mark.parametrize("words", OPTIONS)
def test_bad_option_of_fit_is_refused(
    words, folder, run, tmp_path, monkeypatch
):
    monkeypatch.setattr(fitting, "pretrain", None)
    status, _, errors = run(
        "fit", "--data", folder / "data.npz", "--out", tmp_path / "m.keras",
        *words.split(),
    )  # fmt: skip
    assert status == 2
    assert errors.startswith("error: ") and OPTIONS[words] in errors
    assert not list(tmp_path.iterdir())


NAN = X.copy()
NAN[3, 1] = np.nan
FILES = {
    "other keys": (dict(images=X, labels=Y), "x and y, or x_labeled and .*"
                   "Received: images, labels"),
    "half of the keys": (dict(x=X, y_labeled=Y), "Received: x, y_labeled"),
    "both forms": (
        dict(x=X, y=Y, x_labeled=X, y_labeled=Y, x_unlabeled=X), "not both",
    ),
    "nothing": ({}, "Received: none"),
    "nan": (dict(x=NAN, y=FEW), "1 of its values are NaN"),
    "objects": (dict(x=X.astype(object), y=FEW), "plain arrays"),
    "strings": (dict(x=X.astype(str), y=FEW), "real numbers.*Make numbers of"),
    "flat": (dict(x=X[:, 0], y=FEW), r"or images \(m, h, w\)"),
    "labels of others": (dict(x=X, y=FEW[:9]), "each of the 90 examples"),
    "names of others": (
        dict(x=X, y=NAMES), r"each of the 90 examples. Received: shape=\(3,\)",
    ),
    "float labels": (dict(x=X, y=FEW / 1.0), "integer class indices"),
    "one-hot": (dict(x=X, y=np.eye(3, dtype=int)[Y]), "argmax"),
    "other marker": (dict(x=X, y=FEW - 1), "least label=-2"),
    "no label": (dict(x=X, y=np.full(90, -1)), "No example is labelled"),
    "class without a label": (
        dict(x=X, y=np.where(FEW == 1, 3, FEW)), "none of class 1",
    ),
    "a huge label": (
        dict(x=X, y=np.where(FEW == 2, 10**9, FEW)),
        "1000000001 classes needs a label. Received: none of class "
        "2, 3, 4, 5, 6 and 999999993 more. ",
    ),
    "every label": (
        dict(x=X, y=Y), "No example is unlabelled.*90 examples.*an empty label",
    ),
    "one class": (dict(x=X, y=np.minimum(FEW, 0)), "one class only"),
    "marker in y_labeled": (
        dict(x_labeled=X, y_labeled=FEW, x_unlabeled=X), "not be negative",
    ),
    "other shape": (
        dict(x_labeled=X, y_labeled=Y, x_unlabeled=X[:, :1]), "same shape",
    ),
    "large images": (
        dict(x=np.ones((90, 96, 96)), y=FEW), "96 x 96.*Resize",
    ),
}  # fmt: skip


@pytest.mark.parametrize("arrays, message", FILES.values(), ids=FILES)
def test_bad_data_are_refused(arrays, message, run, tmp_path, monkeypatch):
    monkeypatch.setattr(fitting, "pretrain", None)
    np.savez(tmp_path / "data.npz", **arrays)
    status, _, errors = run(
        "fit", "--data", tmp_path / "data.npz", "--out", tmp_path / "m.keras"
    )
    assert status == 2
    assert errors.startswith("error: ") and re.search(message, errors)
    assert not (tmp_path / "m.keras").exists()


def damaged(folder, kind):
    """Bytes of a file that is not a whole .npz file."""
    whole = (folder / "data.npz").read_bytes()
    if kind == "a byte changed":
        middle = len(whole) // 2
        changed = bytes([whole[middle] ^ 0xFF])
        return whole[:middle] + changed + whole[middle + 1 :]
    return {"empty": b"", "text": b"x,y\n1,2\n", "cut": whole[:200]}[kind]


@pytest.mark.parametrize("kind", ["empty", "text", "cut", "a byte changed"])
def test_damaged_data_are_refused(kind, folder, run, tmp_path):
    path = tmp_path / "data.npz"
    path.write_bytes(damaged(folder, kind))
    words = ["fit", "--data", path, "--out", tmp_path / "m.keras"]
    assert "not readable as an .npz file" in error_of(run(*words))


def test_single_array_is_refused(run, tmp_path):
    path = tmp_path / "x.npz"
    with open(path, "wb") as file:
        np.save(file, X)
    words = ["fit", "--data", path, "--out", tmp_path / "m.keras"]
    assert "not readable as an .npz file" in error_of(run(*words))


def save_model(path, *layers):
    inputs = keras.Input((2,))
    outputs = inputs
    for layer in layers:
        outputs = layer(outputs)
    keras.Model(inputs, outputs).save(path)


@pytest.mark.parametrize(
    "kind, message",
    [
        ("text", "not a Keras model that can be loaded"),
        ("npz", "not a Keras model that can be loaded"),
        ("softmax", "has one. Received: .*activation='softmax'"),
        ("one output", "n of at least 2"),
        ("other features", r"of shape \(3,\).*Received: shape \(2,\)"),
    ],
)
def test_bad_model_is_refused(kind, message, folder, run, tmp_path):
    path = tmp_path / "model.keras"
    if kind == "text":
        path.write_text("no model")
    elif kind == "npz":
        path.write_bytes((folder / "data.npz").read_bytes())
    elif kind == "softmax":
        save_model(path, keras.layers.Dense(3, activation="softmax"))
    elif kind == "one output":
        save_model(path, keras.layers.Dense(1))
    else:
        keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)]).save(path)
    words = [
        "predict", "--model", path, "--data", folder / "new.npz", "--out",
        tmp_path / "p.csv",
    ]  # fmt: skip
    assert re.search(message, error_of(run(*words)))
    assert not (tmp_path / "p.csv").exists()


def test_pixels_of_another_dtype_are_refused_in_predict(run, tmp_path):
    inputs = keras.Input((4, 4, 1), dtype="uint8")
    x = keras.layers.Flatten()(keras.layers.Rescaling(1 / 255)(inputs))
    path = tmp_path / "model.keras"
    keras.Model(inputs, keras.layers.Dense(2)(x)).save(path)
    # Keras would cut 0.5 off to 0.
    np.savez(tmp_path / "x.npz", x=np.full((3, 4, 4), 0.5))
    words = [
        "predict", "--model", path, "--data", tmp_path / "x.npz", "--out",
        tmp_path / "p.csv",
    ]  # fmt: skip
    assert "dtype uint8. Received: shape (4, 4, 1) and dtype float32" in (
        error_of(run(*words))
    )
