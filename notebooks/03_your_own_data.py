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
# This notebook uses GAR on something that is no image of a digit. It shows both
# ways to use it, what to watch, what goes wrong with classes of unequal size,
# and how to save and load the model. It takes about a minute on two cores.
#
# **When does GAR make sense?** When three things hold:
#
# 1. Examples of a class form clusters. An unlabelled example then tells which
#    others it belongs to.
# 2. A network that has seen the few labels is right more often than not.
# 3. The classes are about equally large.

# %%
import logging
import os
from pathlib import Path
import tempfile
import warnings

import keras
import matplotlib.pyplot as plt
import numpy as np

from gar_keras import GARWarning
from gar_keras import GraphActivityRegularization
from gar_keras import error_rate
from gar_keras import pretrain
from gar_keras import regularize
from gar_keras import sgd
from gar_keras import without_dropout

plt.rcParams.update({"figure.dpi": 90, "figure.constrained_layout.use": True})
# TensorFlow would warn of each compilation, and there are several here.
logging.getLogger("tensorflow").setLevel(logging.ERROR)

# %% [markdown]
# The tests of this repository run the notebook with the environment variable
# `GAR_KERAS_QUICK=1`. Then it trains for a moment only. You need not set it.

# %%
QUICK = os.environ.get("GAR_KERAS_QUICK") == "1"
PRETRAIN_EPOCHS = 50 if QUICK else 300
EPOCHS = 1 if QUICK else 15

# %% [markdown]
# ## The data: spectra of six substances
#
# A spectrometer measures samples of six substances, in 120 channels. Each
# substance has four peaks, some of them so close that they look like one. The
# instrument drifts a little, the heights of the peaks vary with the sample, the
# background is tilted, and there is noise. A measurement takes seconds. To know
# the substance for sure takes a chemist.
#
# The data are synthetic, so that we know the truth and can make as many as we
# like.

# %%
CLASSES = 6
CHANNELS = 120

atlas = np.random.default_rng(5)
POSITIONS = atlas.uniform(15, 105, (CLASSES, 4))
HEIGHTS = atlas.uniform(0.5, 1.0, (CLASSES, 4))


def measure(substances, seed):
    """Spectra (m, 120) of the given substances, float32."""
    rng = np.random.default_rng(seed)
    m = len(substances)
    channel = np.arange(CHANNELS)
    drift = rng.normal(0, 1, (m, 1))
    position = (POSITIONS[substances] + drift)[..., None]
    height = HEIGHTS[substances] * rng.lognormal(0, 0.3, (m, 4))
    peaks = height[..., None] * np.exp(-(((channel - position) / 3) ** 2) / 2)
    offset, tilt = rng.normal(0, 0.3, (2, m, 1))
    noise = rng.normal(0, 0.5, (m, CHANNELS))
    spectra = peaks.sum(axis=1) + offset + tilt * channel / CHANNELS + noise
    return spectra.astype("float32")


# %% [markdown]
# One sample of each substance, and in black what it would be without noise,
# drift and background.

# %%
fig, axes = plt.subplots(2, 3, figsize=(9, 3.6), sharex=True, sharey=True)
for k, ax in enumerate(axes.flat):
    distance = np.arange(CHANNELS) - POSITIONS[k][:, None]
    clean = HEIGHTS[k] @ np.exp(-((distance / 3) ** 2) / 2)
    ax.plot(measure(np.array([k]), seed=k)[0], lw=0.8)
    ax.plot(clean, color="black", lw=1)
    ax.set_title(f"substance {k}", fontsize=9)
for ax in axes[1]:
    ax.set_xlabel("channel")
plt.show()

# %% [markdown]
# The chemist has analysed five samples of each substance. 3,000 more have been
# measured, no one knows of what. Another 3,000 serve as a test. In real life
# you would have fewer.


# %%
def make_data(seed, shares=None):
    """Labelled, unlabelled and test data; `shares` are those of the classes."""
    rng = np.random.default_rng(seed)
    y_labeled = np.repeat(np.arange(CLASSES), 5)
    x_labeled = measure(y_labeled, seed=[seed, 1])
    hidden = rng.choice(CLASSES, 3000, p=shares)
    x_unlabeled = measure(hidden, seed=[seed, 2])
    y_test = rng.choice(CLASSES, 3000, p=shares)
    x_test = measure(y_test, seed=[seed, 3])
    return x_labeled, y_labeled, x_unlabeled, (x_test, y_test)


x_labeled, y_labeled, x_unlabeled, test = make_data(seed=0)
print("labelled:  ", x_labeled.shape)
print("unlabelled:", x_unlabeled.shape)
print("test:      ", test[0].shape)

# %% [markdown]
# ## Way 1: `pretrain` and `regularize`
#
# Take any Keras model from inputs to *logits*. The last layer has one unit for
# each class and no activation.


# %%
def make_model():
    inputs = keras.Input((CHANNELS,))
    x = keras.layers.Dense(128, activation="relu")(inputs)
    x = keras.layers.Dropout(0.5)(x)
    x = keras.layers.Dense(64, activation="relu")(x)
    x = keras.layers.Dropout(0.5)(x)
    return keras.Model(inputs, keras.layers.Dense(CLASSES)(x))


keras.utils.set_random_seed(0)
model = make_model()
pretrain(model, x_labeled, y_labeled, epochs=PRETRAIN_EPOCHS, verbose=0)
before = error_rate(model, *test)
pretrained_weights = model.get_weights()
print(f"test error after pretraining: {100 * before:.1f} %")

# %% [markdown]
# Stage 2 takes the labelled spectra without their labels. A rule of the paper:
# about a tenth of them go into each batch, and unlabelled ones fill it up to
# 128. With 30 labelled spectra we take 16; it matters little.
#
# There are no labels to spare for validation here. Without `validation_data`,
# the model ends with the weights of the last epoch.

# %%
history = regularize(
    model,
    x_labeled,
    x_unlabeled,
    labeled_per_batch=16,
    unlabeled_per_batch=112,
    epochs=EPOCHS,
    verbose=0,
).history
after = error_rate(model, *test)
print(f"test error before: {100 * before:5.1f} %")
print(f"test error after:  {100 * after:5.1f} %")

# %% [markdown]
# ## Way 2: the layer, with `compile` and `fit`
#
# `GraphActivityRegularization` is a layer. It returns the logits as they are
# and adds the loss. Put it last, and train as you always do. The network here
# starts from the pretrained weights of way 1, to compare the two.

# %%
network = make_model()
network.set_weights(pretrained_weights)
own = keras.Model(network.input, GraphActivityRegularization()(network.output))
print("last layer:", own.layers[-1].name)
print(f"test error before: {100 * error_rate(own, *test):.1f} %")

# %% [markdown]
# (`pretrain` leaves the loss of GAR out. So you can build the model with the
# layer at once, and pretrain that.)
#
# In stage 2 there is no other loss, and no dropout, as in the experiments of
# the paper. `without_dropout` gives a model with the same weights.
#
# Two things matter in `fit`:
#
# - **The batch is large enough** to show what the whole set looks like, every
#   class in its true share. 128 is fine for ten classes or fewer.
# - **The data are shuffled**, as `fit` does by default.

# %%
keras.utils.set_random_seed(1)
stage_2 = without_dropout(own)
stage_2.compile(sgd(), loss=None)
curves = stage_2.fit(
    x_unlabeled, batch_size=128, epochs=EPOCHS, verbose=0
).history
print("in the history:", ", ".join(curves))
print(f"test error after: {100 * error_rate(own, *test):.1f} %")

# %% [markdown]
# Way 1 differs in two respects: labelled spectra are in its batches, and their
# order is another. One run of each does not tell which of the two matters, or
# whether either does.
#
# ## What to watch
#
# Without labels you cannot see the error. You can see three things:
#
# - the affinity: it should fall towards 0;
# - the balance: it should stay near, or rise to, that of the right classes. In
#   a batch of $m$ examples of $n$ equal classes this is about
#   $(m - 1) / (m + n - 1)$, here 0.95. Far above it is no good sign: the
#   batches are too small for the number of classes;
# - how many examples the model puts into each class. Are these the shares you
#   expect?

# %%
epochs = np.arange(1, EPOCHS + 1)
guess = model.predict(x_unlabeled, verbose=0).argmax(axis=1)

fig, axes = plt.subplots(1, 3, figsize=(9, 2.6))
for key, ax, name in (
    ("affinity", axes[0], r"affinity $\alpha$"),
    ("balance", axes[1], r"balance $\beta$"),
):
    ax.plot(epochs, history[key], ".-", label="way 1")
    ax.plot(epochs, curves[key], ".-", label="way 2")
    ax.set(title=name, xlabel="epoch")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.grid(alpha=0.3)
axes[0].set_yscale("log")
axes[0].legend()
axes[2].bar(range(CLASSES), np.bincount(guess, minlength=CLASSES))
axes[2].axhline(len(guess) / CLASSES, color="black", ls="--", lw=1)
axes[2].set(
    title="unlabelled spectra in each class",
    xlabel="class",
    xticks=range(CLASSES),
)
plt.show()

# %% [markdown]
# Way 2 ends with the lower affinity and with the higher balance, which has gone
# past that of the right classes and still climbs. And it has the higher error.
# Neither number tells how right a model is.
#
# **The loss asks for firm and even decisions, not for right ones.** It cannot
# replace pretraining. This is the same training from an untrained network, with
# what `regularize` warns of:

# %%
keras.utils.set_random_seed(2)
untrained = make_model()
error_untrained = error_rate(untrained, *test)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always", GARWarning)
    trap = regularize(
        untrained, x_labeled, x_unlabeled, epochs=EPOCHS, verbose=0
    ).history
for warning in caught:
    if issubclass(warning.category, GARWarning):
        print("warning:", warning.message)
guess = untrained.predict(x_unlabeled, verbose=0).argmax(axis=1)

print(f"affinity at the end: {trap['affinity'][-1]:.4f}")
print(f"balance at the end:  {trap['balance'][-1]:.4f}")
print(f"spectra in each class: {np.bincount(guess, minlength=CLASSES)}")
print(f"test error before: {100 * error_untrained:.1f} %")
print(f"test error after:  {100 * error_rate(untrained, *test):.1f} %")

# %% [markdown]
# Such a network becomes firm all the same. So a low affinity alone means
# nothing. A low balance, and classes that stay empty, give the collapse away.
#
# ## Is the gain real?
#
# One run proves little. We repeat both stages with other data and another
# network for each seed.


# %%
def both_stages(seed, shares=None, layers=({},)):
    """Errors in percent: before stage 2, and after it with each layer."""
    x_labeled, y_labeled, x_unlabeled, test = make_data(seed, shares)
    keras.utils.set_random_seed(seed)
    model = make_model()
    pretrain(
        model,
        x_labeled,
        y_labeled,
        epochs=PRETRAIN_EPOCHS,
        seed=seed,
        verbose=0,
    )
    errors = [100 * error_rate(model, *test)]
    weights = model.get_weights()
    for options in layers:
        model.set_weights(weights)
        with warnings.catch_warnings():
            # Here the errors tell.
            warnings.simplefilter("ignore", GARWarning)
            regularize(
                model,
                x_labeled,
                x_unlabeled,
                epochs=EPOCHS,
                seed=seed,
                verbose=0,
                layer=GraphActivityRegularization(**options),
            )
        errors.append(100 * error_rate(model, *test))
    return errors


seeds = range(1 if QUICK else 5)
runs = np.array([both_stages(seed) for seed in seeds])
gain = runs[:, 0] - runs[:, 1]
print("seed  before  after")
for seed, (first, last) in zip(seeds, runs, strict=True):
    print(f"{seed:4}  {first:5.1f}  {last:5.1f}")
print(f"mean  {runs[:, 0].mean():5.1f}  {runs[:, 1].mean():5.1f}")
print(
    f"n = {len(runs)}; better in {np.sum(gain > 0)}, worse in "
    f"{np.sum(gain < 0)}"
)

# %% [markdown]
# ## What goes wrong with unbalanced classes
#
# The balance term wants all classes to be equally used. To be exact, it wants
# the entries of $v$ to be equal, and $v_j = \sum_i B_{ij}^2$. A large class can
# meet this in two ways: it loses examples to others, which is an error, or its
# activations stay small while those of rare classes grow, which does no harm.
#
# We let one substance make up a half, then three quarters, of the unlabelled
# and of the test spectra. The labelled ones are even, as before. Each case runs
# with the balance coefficient of the paper, $c_\beta = 1$, with a smaller one,
# and with `class_prior`: the shares of the classes, which the balance term then
# takes in place of equal ones.

# %%
LAYERS = ("c_β = 1", "c_β = 0.1", "class_prior")
largest = (1 / CLASSES, 0.5, 0.75)
seeds = range(1 if QUICK else 3)
table = {}
for share in largest:
    rest = (1 - share) / (CLASSES - 1)
    shares = [share] + [rest] * (CLASSES - 1)
    layers = ({}, {"balance": 0.1}, {"class_prior": shares})
    table[share] = np.array(
        [both_stages(seed, shares, layers) for seed in seeds]
    )

print("test errors in percent")
print("largest class  seed  before stage 2", *(f"{n:>12}" for n in LAYERS))
for share, errors in table.items():
    for seed, run in zip(seeds, errors, strict=True):
        first, *rest = (f"{error:.1f}" for error in run)
        print(
            f"{100 * share:11.0f} %{seed:6}{first:>16}"
            + "".join(f"{error:>13}" for error in rest)
        )
print(f"n = {len(seeds)} for each size of the largest class")

# %%
fig, axes = plt.subplots(1, len(table), figsize=(9, 2.8), sharey=True)
for ax, (share, errors) in zip(axes, table.items(), strict=True):
    for seed, run in zip(seeds, errors, strict=True):
        ax.plot(range(4), run, "o-", ms=5, lw=0.8, label=f"seed {seed}")
    ax.set_xticks(
        range(4),
        ["before", r"$c_\beta = 1$", r"$c_\beta = 0.1$", "prior"],
        fontsize=8,
    )
    ax.set_xlim(-0.4, 3.4)
    ax.set_title(f"largest class: {100 * share:.0f} %", fontsize=10)
    ax.grid(alpha=0.3)
axes[0].set(ylabel="test error, %", yscale="log")
axes[0].set_yticks([2, 5, 10, 20, 50], ["2", "5", "10", "20", "50"])
axes[0].minorticks_off()
axes[0].legend(fontsize=8)
plt.show()

# %% [markdown]
# At 17 % all classes are equal, as in the runs before. The errors are others
# all the same, before stage 2 as well: where shares are given, the unlabelled
# and the test spectra are drawn in another way.
#
# Look at both ends: what a smaller $c_\beta$ saves where classes are very
# unequal, it costs where they are not.
#
# What to do if your classes are unequal:
#
# - Give their shares, if you know them:
#   `GraphActivityRegularization(class_prior=shares)`. From labels that were
#   drawn at random, `gar_keras.class_prior_of(labels, n, smoothing=1)`
#   estimates them. The labels here were chosen evenly: they tell nothing.
# - Look at the model's shares of the classes before and after stage 2. A large
#   class that shrinks is a warning.
# - Or try a smaller $c_\beta$: `GraphActivityRegularization(balance=0.1)`. At 0
#   nothing stops a collapse into few classes.
# - Keep some labels for validation, with classes in their true shares, and pass
#   them as `validation_data`. `regularize` then keeps the best epoch.
#
# ## Saving and loading
#
# A model with the layer is saved and loaded like any other. The program that
# loads it must have imported `GraphActivityRegularization`, so that Keras knows
# the layer.

# %%
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "spectra.keras"
    own.save(path)
    loaded = keras.models.load_model(path)

same = np.array_equal(
    loaded.predict(test[0], verbose=0), own.predict(test[0], verbose=0)
)
print("the same logits:", same)
for name, value in loaded.layers[-1].coefficients.items():
    print(f"coefficient of {name}: {value:g}")

# %% [markdown]
# After way 1 there is no such layer in `model`. It loads without `gar_keras`.
#
# ## Checklist
#
# 1. The last layer gives logits, without activation.
# 2. Inputs are scaled as for any network.
# 3. The pretrained network is right more often than not.
# 4. Batches of 128 or more. Each shows all classes.
# 5. Affinity falls, balance stays high, shares of the classes look right.
# 6. A few labels kept back, to know whether it helped.
