# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Your own data, your own model
#
# From a file or a folder to predictions: a CSV with labels for a few rows, a
# Keras model of your own, the layer in a `fit` of your own, a folder of images.
# Then what to watch, what goes wrong, and how to tell whether it helped.
#
# In a clone of this repository:
#
# ```bash
# pip install -e ".[notebooks]"
# jupyter lab notebooks
# ```
#
# It takes about two minutes on two cores, without a GPU.
#
# **When does GAR make sense?** When three things hold:
#
# 1. Examples of a class form clusters. An unlabelled example then tells which
#    others it belongs to.
# 2. A network that has seen the few labels is right most of the time (error
#    below about 45 %).
# 3. The classes are about equally large.

# %%
import tempfile
import warnings
from pathlib import Path

import keras
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import tensorflow as tf
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.semi_supervised import LabelSpreading

from gar_keras import (
    GARClassifier,
    GARWarning,
    GraphActivityRegularization,
    attach,
    error_rate,
    expected_balance,
    pretrain,
    regularize,
    sgd,
)

plt.rcParams.update({"figure.dpi": 90, "figure.constrained_layout.use": True})

# %% tags=["parameters"]
PRETRAIN_EPOCHS = 1000
EPOCHS = 100
SEEDS = 3

# %% [markdown]
# ## 1. The data: scans of digits
#
# 1,797 handwritten digits that come with scikit-learn, as tabular data: each
# row has the grey levels of 8 by 8 pixels, from 0 to 16. 597 rows are kept to
# test with. Of the others five of each digit keep their label, 50 in all.

# %%
digits = load_digits()
X = digits.data.astype("float32")
Y = digits.target


def make_split(seed):
    """Indices of the test rows, of the labelled rows and of all others."""
    order = np.random.default_rng(seed).permutation(len(X))
    test, rest = order[:597], order[597:]
    labeled = np.concatenate([rest[Y[rest] == k][:5] for k in range(10)])
    return test, labeled, rest


test, labeled, rest = make_split(seed=0)
x_test, y_test = X[test], Y[test]
x_labeled, y_labeled = X[labeled], Y[labeled]
# All training rows without their labels, the labelled ones among them.
x_unlabeled = X[rest]
print(f"{len(rest)} to train with, {len(labeled)} of them labelled")
print(f"{len(test)} to test with")

# %%
fig, axes = plt.subplots(1, 10, figsize=(9, 1.2))
for ax, row in zip(axes, x_labeled[:: len(x_labeled) // 10], strict=True):
    ax.imshow(row.reshape(8, 8), cmap="gray_r")
    ax.axis("off")
plt.show()

# %% [markdown]
# *Try*: keep two labels of each digit in place of five (`[:2]`), and run all
# cells. Compare the errors after pretraining and after GAR.
#
# ## 2. From a CSV: `GARClassifier`
#
# Your data may come as a file with a row for each example and a column `label`,
# empty where nobody knows it. We write such a file.

# %%
TEMPORARY = tempfile.TemporaryDirectory()
FOLDER = Path(TEMPORARY.name)

names = np.array([f"digit {k}" for k in Y])
known = np.where(np.isin(rest, labeled), names[rest], "")
table = pd.DataFrame(X[rest], columns=[f"pixel {k}" for k in range(64)])
table.assign(label=known).to_csv(FOLDER / "digits.csv", index=False)
pd.DataFrame(x_test).to_csv(FOLDER / "new.csv", index=False)

# %% [markdown]
# These lines are all that it takes. The classifier makes a network of two
# hidden layers, scales the columns, and trains both stages. Left to itself,
# `GARClassifier(random_state=0)`, it trains twice as long in stage 1.

# %%
table = pd.read_csv(FOLDER / "digits.csv", converters={"label": str})
labels = table.pop("label").to_numpy(str)
classifier = GARClassifier(
    pretrain_epochs=PRETRAIN_EPOCHS, epochs=EPOCHS, random_state=0
)
classifier.fit(table.to_numpy("float32"), labels)

new = pd.read_csv(FOLDER / "new.csv").to_numpy("float32")
predicted = classifier.predict(new)
print(predicted[:5])
print(f"test error: {100 * np.mean(predicted != names[test]):.1f} %")

# %% [markdown]
# *Try*: `validation_fraction=0.2`, then
# `print(classifier.history_["regularization"]["val_error"])`. How well do ten
# validation rows tell errors apart?
#
# ## 3. Your own network: `pretrain` and `regularize`
#
# Take any Keras model from inputs to *logits*. The last layer has one unit for
# each class and no activation.


# %%
def make_model():
    inputs = keras.Input((64,))
    x = keras.layers.Rescaling(1 / 16)(inputs)
    x = keras.layers.Dense(128, activation="relu")(x)
    x = keras.layers.Dropout(0.5)(x)
    x = keras.layers.Dense(64, activation="relu")(x)
    x = keras.layers.Dropout(0.5)(x)
    return keras.Model(inputs, keras.layers.Dense(10)(x))


keras.utils.set_random_seed(0)
model = make_model()
pretrain(model, x_labeled, y_labeled, epochs=PRETRAIN_EPOCHS, verbose=0)
pretrained = model.get_weights()
print(f"test error before: {100 * error_rate(model, x_test, y_test):.1f} %")

history = regularize(
    model,
    x_labeled,
    x_unlabeled,
    y_labeled=y_labeled,
    epochs=EPOCHS,
    verbose=0,
).history
print(f"test error after:  {100 * error_rate(model, x_test, y_test):.1f} %")

# %% [markdown]
# *Try*: all 50 labelled rows in each batch, `labeled_per_batch=50` and
# `unlabeled_per_batch=78`. The network then learns these rows by heart.
#
# ## 4. The layer in a `fit` of your own
#
# `attach` puts the layer behind the logits of the model. It shares its weights.
# The batches should differ from epoch to epoch: `shuffle` of `tf.data` draws
# them anew, and `fit` on an array may not.

# %%
model.set_weights(pretrained)
with_layer = attach(model)
with_layer.compile(sgd(global_clipnorm=1.0), loss=None)
stream = tf.data.Dataset.from_tensor_slices(x_unlabeled)
stream = stream.shuffle(len(x_unlabeled)).batch(128)
curves = with_layer.fit(stream, epochs=EPOCHS, shuffle=False, verbose=0).history
print(f"test error: {100 * error_rate(model, x_test, y_test):.1f} %")

# %% [markdown]
# Saving and loading is that of any Keras model. The program that loads a model
# with the layer needs `import gar_keras`; after `pretrain` and `regularize`
# there is no such layer in `model`.

# %%
with_layer.save(FOLDER / "layer.keras")
loaded = keras.models.load_model(FOLDER / "layer.keras")
both = [m.predict(x_test, verbose=0) for m in (loaded, with_layer)]
print("the same logits:", np.array_equal(*both))

# %% [markdown]
# *Try*: `with_layer.fit(x_unlabeled, batch_size=128, ...)` in place of the
# stream, after `keras.utils.set_random_seed(0)`.
#
# ## 5. A folder of images
#
# The digits as PNG files, in a folder for each class and one for those that
# nobody has labelled. Keras reads both; no more than a few batches of the
# unlabelled ones are in memory.


# %%
def write_images(folder, rows):
    folder.mkdir(parents=True)
    for i, row in enumerate(rows):
        image = (row * 255 / 16).astype("uint8").reshape(8, 8)
        Image.fromarray(image).save(folder / f"{i}.png")


for k in range(10):
    write_images(FOLDER / "labeled" / str(k), x_labeled[y_labeled == k])
write_images(FOLDER / "unlabeled", x_unlabeled)

read = keras.utils.image_dataset_from_directory
options = {"image_size": (8, 8), "color_mode": "grayscale", "verbose": False}
images_labeled = read(FOLDER / "labeled", **options)
images_unlabeled = read(FOLDER / "unlabeled", labels=None, **options)

# %%
keras.utils.set_random_seed(0)
flat = [keras.layers.Rescaling(16 / 255), keras.layers.Flatten()]
on_images = keras.Sequential([keras.Input((8, 8, 1)), *flat, make_model()])
pretrain(on_images, images_labeled, epochs=PRETRAIN_EPOCHS // 2, verbose=0)
x_images = (x_test * 255 / 16).astype("uint8").reshape(-1, 8, 8, 1)
before = error_rate(on_images, x_images, y_test)
regularize(
    on_images, images_labeled, images_unlabeled, epochs=EPOCHS, verbose=0
)
after = error_rate(on_images, x_images, y_test)
print(f"test error: {100 * before:.1f} % before, {100 * after:.1f} % after")

# %% [markdown]
# Other forms of data, such as HDF5, are in `docs/your-data.md`.
#
# *Try*: import `RandomAffine`, and put `RandomAffine(0.0, shift=1)` in front of
# `flat`, since these images may be shifted.
#
# ## 6. What to watch
#
# Without labels you cannot see the error. You can see these:
#
# - the affinity: it should fall towards 0;
# - the balance: it should come near that of the right classes. In a batch of
#   $m$ examples of $n$ equal classes this is about $(m - 1) / (m + n - 1)$,
#   `gar_keras.expected_balance`, dashed below;
# - how many examples the model puts into each class. `classes_in_use`, in the
#   progress bar, should stay at the number of classes, and a warning names
#   those that are lost.
#
# The affinity alone does not say how right predictions are. This is stage 2
# without labels, from an untrained network: its affinity is lower than ours,
# and only the balance and the warning give it away. Wrong predictions that use
# all classes show in none of them.

# %%
keras.utils.set_random_seed(2)
untrained = make_model()
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always", GARWarning)
    trap = regularize(
        untrained, x_labeled, x_unlabeled, epochs=EPOCHS, verbose=0
    ).history
error = error_rate(untrained, x_test, y_test)
print(f"affinity {trap['affinity'][-1]:.4f}, balance {trap['balance'][-1]:.3f}")
print(f"test error {100 * error:.1f} %")
for warning in told:
    print(str(warning.message).partition(":")[0])

# %%
fig, axes = plt.subplots(1, 2, figsize=(7, 2.6))
for name, ax in zip(("affinity", "balance"), axes, strict=True):
    for label, curve in {
        "regularize": history,
        "fit, with dropout": curves,
        "from an untrained network": trap,
    }.items():
        ax.plot(np.arange(1, EPOCHS + 1), curve[name], label=label)
    ax.set(title=name, xlabel="epoch of stage 2")
    ax.grid(alpha=0.3)
axes[0].set_yscale("log")
axes[0].legend(fontsize=7)
axes[1].axhline(expected_balance(128, 10), color="black", ls="--", lw=1)
plt.show()

# %% [markdown]
# The balance of `fit` is lower. It keeps dropout, and has no labels; the figure
# does not tell the two apart.
#
# *Try*: `layer=GraphActivityRegularization(balance=1e-9)` in `regularize`, from
# the pretrained weights (`model.set_weights(pretrained)`). Which curve gives it
# away?
#
# ## 7. Is the gain real?
#
# One run proves little. Both stages on other splits, and beside them label
# spreading, a method of scikit-learn without a network: it is fast, and strong
# on these digits.


# %%
def pretrained_on(seed):
    """The split of a seed, and a model that is trained on its labels."""
    test, labeled, rest = make_split(seed)
    keras.utils.set_random_seed(seed)
    model = make_model()
    pretrain(
        model,
        X[labeled],
        Y[labeled],
        epochs=PRETRAIN_EPOCHS,
        seed=seed,
        verbose=0,
    )
    return model, test, labeled, rest


def spread(test, labeled, rest):
    """The error of label spreading."""
    y = np.where(np.isin(rest, labeled), Y[rest], -1)
    spreading = LabelSpreading(kernel="knn", n_neighbors=7, max_iter=200)
    return 1 - spreading.fit(X[rest], y).score(X[test], Y[test])


print("seed  pretraining   GAR   label spreading")
for seed in range(SEEDS):
    model, test, labeled, rest = pretrained_on(seed)
    before = error_rate(model, X[test], Y[test])
    regularize(
        model, X[labeled], X[rest], y_labeled=Y[labeled], epochs=EPOCHS,
        seed=seed, verbose=0,
    )  # fmt: skip
    after = error_rate(model, X[test], Y[test])
    errors = before, after, spread(test, labeled, rest)
    print(f"{seed:4}", *(f"{100 * error:9.1f} %" for error in errors))

# %% [markdown]
# GAR lowers the error on each split. Label spreading is lower still on these
# digits, but not on most small sets of [Where GAR
# helps](../docs/where-gar-helps.md#ten-small-data-sets): compare both on your
# data.
#
# *Try*: ten labels of each digit (`[:10]`). Is label spreading still ahead?
#
# ## 8. Imbalanced classes
#
# The balance of the paper's loss, which is the one without `y_labeled`, wants
# all classes to be equally used. We keep all zeros and
# one in eight of the other rows, so that nearly half of the unlabelled and of
# the test rows are zeros, and tell one of two layers so with `class_prior`.


# %%
def imbalanced(indices):
    """All zeros, and one in eight of the others."""
    return indices[(Y[indices] == 0) | (np.arange(len(indices)) % 8 == 0)]


def with_prior(prior, model, labeled, few, seed):
    """Trains with these proportions of the classes; `None` for equal ones."""
    layer = GraphActivityRegularization(class_prior=prior)
    options = {"epochs": 3 * EPOCHS, "seed": seed, "verbose": 0}
    with warnings.catch_warnings():
        # Some lose a class, and are warned of it.
        warnings.simplefilter("ignore", GARWarning)
        regularize(model, X[labeled], X[few], layer=layer, **options)


print("seed  pretraining  equal classes  class_prior")
for seed in range(SEEDS):
    model, test, labeled, rest = pretrained_on(seed)
    weights, few = model.get_weights(), imbalanced(rest)
    shares = np.bincount(Y[few], minlength=10) / len(few)
    x_few, y_few = X[imbalanced(test)], Y[imbalanced(test)]
    errors = [error_rate(model, x_few, y_few)]
    for prior in (None, shares):
        model.set_weights(weights)
        with_prior(prior, model, labeled, few, seed)
        errors.append(error_rate(model, x_few, y_few))
    print(f"{seed:4}", *(f"{100 * error:10.1f} %" for error in errors))

# %% [markdown]
# If your classes are imbalanced:
#
# - Give `regularize` your labels: the default then takes the proportions from
#   the predictions. Above they are left out, to show the paper's loss.
# - Give the proportions if you know them. From labels that were drawn at
#   random `gar_keras.class_prior_of` estimates them; ours were chosen evenly,
#   and tell nothing.
# - Keep some labels for validation, with classes in their true proportions,
#   and compare with stage 1. Here the right prior is below equal classes on
#   each split, and below stage 1 on two of three. On MNIST it repaired most of
#   the harm, but on one seed of three the error is 10 points above stage 1
#   ([Where GAR helps](../docs/where-gar-helps.md#uneven-classes)).
#
# *Try*: wrong proportions, e.g. `class_prior=shares[::-1]`.
#
# ## Checklist
#
# 1. The last layer gives logits, without activation.
# 2. Inputs are scaled as for any network.
# 3. The pretrained network is right most of the time.
# 4. Batches of three examples a class or more, other ones in each epoch, and
#    few of the labelled examples in each.
# 5. Affinity falls, balance comes near its target, proportions of the classes
#    look right, and no warning came.
# 6. A few labels kept back, to know whether it helped.
