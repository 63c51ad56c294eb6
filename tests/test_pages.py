"""The Python of the README and the pages of docs, run once each."""

import re
import warnings
from pathlib import Path

import fresh
import h5py
import keras
import numpy as np
import pandas as pd
import pytest
from few_digits import load_few
from scipy.stats import binomtest
from snippets import python_blocks, run_blocks, text_blocks

from gar_keras import GraphActivityRegularization, datasets, pretrain, sgd
from gar_keras.estimator.examples import as_labels, encode

ROOT = Path(__file__).parents[1]
PAGES = {
    path.relative_to(ROOT).as_posix(): python_blocks(path.read_text("utf-8"))
    for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
}
# Pages whose examples other tests run, with the data that they need.
ELSEWHERE = {"docs/distributed.md", "docs/export.md"}
WITH_PYTHON = {name for name, blocks in PAGES.items() if blocks} - ELSEWHERE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        keras.backend.backend() != "tensorflow", reason="once is enough"
    ),
]


def arrays(side=28, classes=10):
    """Noise with labels, as x_labeled, y_labeled and so on."""
    images = np.random.default_rng(0).uniform(size=(48, side, side, 1))
    x, y = images.astype("float32"), np.arange(48) % classes
    return {
        "x_labeled": x[:20],
        "y_labeled": y[:20],
        "x_unlabeled": x,
        "x_val": x[20:30],
        "y_val": y[20:30],
        "x_test": x[30:],
        "y_test": y[30:],
        "x": x,
        "y": np.where(np.arange(48) < 20, y, -1),
    }


def fruits():
    """A CSV with text, gaps and names of classes, for half of its rows."""
    rng = np.random.default_rng(0)
    kind = np.arange(60) % 3
    columns = {
        "colour": np.array(["red", "green", ""])[kind],
        "shop": np.array(["north", "south"])[rng.integers(2, size=60)],
        "weight": (kind + rng.normal(2, 0.5, 60)).round(2).astype(str),
        "width": (10 - 2 * kind + rng.normal(size=60)).round(2).astype(str),
        "label": np.array(["apple", "pear", "plum"])[kind],
    }
    columns["weight"][::7] = ""
    columns["label"][30:] = ""
    return columns


USE = (ROOT / "docs/use.md").read_text("utf-8")
# What the blocks of a page find; docs/use.md makes its own data.
GIVEN = {"docs/use.md": {}}
TABLE = np.random.default_rng(0).normal(5, 2, size=(48, 4))
GIVEN["docs/your-data.md"] = arrays(8, 3) | {
    "table": TABLE, "table_labeled": TABLE[:20],
}  # fmt: skip
# Loaders give pairs of batches, data sets of PyTorch pairs of an image and a
# label, with the channels first.
FIRST = np.moveaxis(arrays()["x"], -1, 1)
GIVEN["docs/from-pytorch.md"] = {
    "labeled_loader": [
        (FIRST[:10], [*range(10)]),
        (FIRST[10:20], [*range(10)]),
    ],
    "unlabeled_loader": [(FIRST[:32], [0] * 32), (FIRST[32:], [0] * 16)],
    "unlabeled_dataset": [(image, 0) for image in FIRST],
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with the files that the pages read."""
    monkeypatch.chdir(tmp_path)
    images = arrays(8)["x"]
    for i, image in enumerate(images[:20]):
        for name in (f"labeled/{i % 10}", "unlabeled"):
            Path(name).mkdir(parents=True, exist_ok=True)
            keras.utils.save_img(f"{name}/{i}.png", image)
    np.save("images.npy", images)
    with h5py.File("images.h5", "w") as file:
        file["x"] = images
    columns = fruits()
    for name in ("samples.csv", "new.csv"):
        rows = zip(*columns.values(), strict=True)
        lines = [columns, *rows]
        Path(name).write_text("\n".join(",".join(line) for line in lines))
        columns.pop("label", None)
    return tmp_path


@pytest.mark.filterwarnings("ignore:GAR never began")
@pytest.mark.parametrize("name", sorted(WITH_PYTHON))
def test_the_python_of_a_page_runs(name, folder, monkeypatch, capsys):
    from gar_keras.estimator.classifier import GARClassifier

    monkeypatch.setattr(datasets, "load_mnist", load_few)
    for option in ("pretrain_epochs", "epochs"):
        usual = GARClassifier.__init__.__kwdefaults__
        monkeypatch.setitem(usual, option, 1)
    flat = [keras.layers.Flatten(), keras.layers.Dense(10)]
    model = keras.Sequential([keras.Input((28, 28, 1)), *flat])
    given = GIVEN.get(name, arrays() | {"model": model})
    found = run_blocks(PAGES[name], given)
    if name == "docs/as-in-keras.md":
        layer = found["with_layer"].layers[-1]
        found["warm_up"].on_epoch_begin(50, {})
        assert layer.coefficients["affinity"] == 1.5
    if name == "README.md":
        assert found["model"].output_shape == (None, 10)
    if name == "docs/from-pytorch.md":
        assert found["x"].shape == (20, 28, 28, 1)
        assert f"{found['loss']:.5f}" == "1.61539"
    if name == "docs/use.md":
        printed = iter(without_values(capsys.readouterr().out))
        shown = without_values("".join(text_blocks(USE)))
        assert [line for line in shown if line not in printed] == []
        assert fresh.run(LOADED_ELSEWHERE).split() == [
            *found["pipeline"].predict(pd.read_csv("samples.csv"))
        ]


# Predictions for the page's table, by a program that loads the pipeline.
LOADED_ELSEWHERE = """
import joblib
import pandas as pd
loaded = joblib.load("pipeline.joblib")
print(*loaded.predict(pd.read_csv("samples.csv")))
"""


def without_values(text):
    """The lines that are printed, without numbers, names and omissions."""
    text = re.sub(r"\d[\d.]*(?:e-\d+)?(?:us|ms|s)?|'\w+'| ", "#", text)
    text = re.sub("#+", "#", text)
    return [line for line in text.splitlines() if line != "..."]


def test_the_intervals_of_the_page_are_those_of_clopper_and_pearson():
    rows = re.findall(
        r"^\| (\d+) \| (\d+) to (\d+) % \| (\d+) to (\d+) %", USE, re.M
    )
    assert len(rows) == 5
    for row in rows:
        n, *shown = map(int, row)
        intervals = [
            binomtest(wrong, n).proportion_ci(method="exact")
            for wrong in (0, round(n / 10))
        ]
        exact = [100 * bound for pair in intervals for bound in pair]
        np.testing.assert_allclose(shown, exact, atol=0.51)
    # Rows that changed, all for the better: six are the least that tell.
    assert binomtest(6, 6).pvalue < 0.05 < binomtest(5, 5).pvalue


def test_the_warnings_of_the_page_are_those_of_the_library():
    sources = [
        path.read_text("utf-8") for path in (ROOT / "gar_keras").rglob("*.py")
    ]
    messages = re.sub(r'"\s*\n\s*f?"', "", "".join(sources))
    told = re.findall(r'^\| "([^"]+)"', USE, re.M)
    assert len(told) == 7
    assert [words for words in told if words not in messages] == []


def test_names_of_classes_in_a_csv_file_are_as_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = ["0", "01", "1.50", "NA", "None", "nan", "N/A", "TRUE", ""]
    lines = [f"{i},{name}" for i, name in enumerate(names)]
    Path("samples.csv").write_text("\n".join(["a,label", *lines]))
    (recipe,) = (b for b in PAGES["docs/use.md"] if "read_csv" in b)
    found = run_blocks([recipe.partition("numbers = ")[0]], {})
    classes, targets = encode(as_labels(found["labels"]))
    assert classes.tolist() == sorted(names[:-1])
    assert [*classes[targets[:-1]]] == names[:-1]
    assert targets[-1] == -1


# docs/export.md: what is saved and exported runs without this package.

X = np.random.default_rng(0).normal(size=(5, 6)).astype("float32")
EXPORT = PAGES["docs/export.md"]

WITHOUT_THE_PACKAGE = """
import sys
sys.modules["gar_keras"] = None
import numpy as np
import tensorflow as tf
x = np.load("x.npy")
loaded = tf.saved_model.load("saved_model")
np.save("saved_model.npy", loaded.serve(x))
import keras
for name in ("plain", "other"):
    model = keras.saving.load_model(f"{name}.keras", compile=False)
    np.save(f"{name}.npy", model(x))
try:
    keras.saving.load_model("with_gar.keras")
except TypeError:
    print("refused")
"""


def outputs(model):
    return keras.ops.convert_to_numpy(model(X))


def test_files_are_loaded_where_this_package_is_not(folder):
    found = run_blocks([b for b in EXPORT if "format=" not in b], {})
    model = found["model"]
    assert isinstance(model.layers[-1], GraphActivityRegularization)
    model.save("with_gar.keras")
    # With the optimizer of this package.
    options = dict(epochs=1, optimizer=sgd(0.0), verbose=0)
    pretrain(found["plain"], X, np.arange(5) % 3, **options)
    found["plain"].save("plain.keras")
    np.save("x.npy", X)
    assert fresh.run(WITHOUT_THE_PACKAGE) == "refused\n"
    for name, expected in (
        ("saved_model", model),
        ("plain", model),
        ("other", found["other"]),
    ):
        np.testing.assert_allclose(
            np.load(f"{name}.npy"), outputs(expected), rtol=1e-5
        )


def test_rescaling_takes_the_place_of_normalization():
    (block,) = (b for b in EXPORT if "def rescaling" in b)
    found = run_blocks([EXPORT[0], block], {})
    inputs = keras.Input((6,))
    layer = keras.layers.Normalization(mean=X.mean(0), variance=X.var(0))
    model = keras.Model(inputs, keras.layers.Dense(3)(layer(inputs)))
    clone = keras.models.clone_model(
        model, clone_function=found["rescaling_for_normalization"]
    )
    assert not [x for x in clone.layers if x.name == layer.name]
    np.testing.assert_allclose(outputs(clone), outputs(model), 1e-5, 1e-6)


def test_a_litert_file_has_the_outputs_of_the_model(folder):
    import tensorflow as tf

    (block,) = (b for b in EXPORT if 'format="litert"' in b)
    # Of the converter.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = run_blocks([EXPORT[0], block], {})["model"]
        runner = tf.lite.Interpreter("model.tflite").get_signature_runner()
        (name,) = runner.get_input_details()
        rows = [runner(**{name: X[i : i + 1]}) for i in range(len(X))]
    results = np.concatenate([next(iter(row.values())) for row in rows])
    np.testing.assert_allclose(results, outputs(model), 1e-5, 1e-6)
