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
# # Quick start: 100 labels, 10,000 images without
#
# You have many images and few labels. GAR, *graph-based activity
# regularization* (Kilinc and Uysal, 2017), uses both, in two stages.
#
# 1. **Pretraining.** A network learns from the few labels alone.
# 2. **Regularization.** The same network goes on with images that have no
#    label. Its loss looks only at its own outputs. It asks for two things:
#    each image should belong to one class, and all classes should be used
#    equally.
#
# The paper uses no label in stage 2: the error falls anyway, if the network was
# right most of the time to begin with. This package can use the labels again,
# which is the default as soon as `regularize` is given them. This notebook
# shows both on MNIST, in one run each of one seed.
#
# In a clone of this repository:
#
# ```bash
# pip install -e ".[notebooks]"
# jupyter lab notebooks
# ```
#
# It takes about two minutes on two cores, without a GPU. TensorFlow may print
# log lines that do no harm, and numbers differ a little from one processor to
# another.

# %%
import keras
import matplotlib.pyplot as plt
import numpy as np

from gar_keras import error_rate, expected_balance, pretrain, regularize
from gar_keras.datasets import load_mnist, make_split

plt.rcParams.update({"figure.dpi": 90, "figure.constrained_layout.use": True})

# %% tags=["parameters"]
SEED = 0
PRETRAIN_EPOCHS = 500
EPOCHS = 30

# %% [markdown]
# ## The data
#
# MNIST comes with the package. `make_split` picks 100 training images that
# keep their labels, ten of each digit. It also picks 1,000 others to validate
# with.

# %%
mnist = load_mnist()
split = make_split(mnist.y_train, num_labeled=100, seed=SEED)
x_labeled = mnist.x_train[split.labeled]
y_labeled = mnist.y_train[split.labeled]
validation = (
    mnist.x_train[split.validation],
    mnist.y_train[split.validation],
)
test = (mnist.x_test, mnist.y_test)

print(f"labelled:   {x_labeled.shape}, {x_labeled.dtype}")
print(f"validation: {validation[0].shape}")
print(f"test:       {test[0].shape}")

# %% [markdown]
# The unlabelled images are the first 10,000 training images. The experiments
# of the paper use all 60,000; less is enough to see the effect.

# %%
x_unlabeled = mnist.x_train[:10_000]

# %% [markdown]
# These are all the labels that it is trained on:

# %%
by_class = x_labeled[np.argsort(y_labeled, kind="stable"), :, :, 0]
rows = by_class.reshape(10, -1, 28, 28)
sheet = rows.swapaxes(1, 2).reshape(280, -1)

fig, ax = plt.subplots(figsize=(3.6, 3.6))
ax.imshow(sheet, cmap="gray_r")
ax.set(xticks=[], yticks=np.arange(10) * 28 + 14, yticklabels=range(10))
ax.set_title(f"the {len(x_labeled)} labelled images", fontsize=10)
plt.show()

# %% [markdown]
# *Try*: 20 labels in place of 100. What is the error after pretraining then?
#
# ## The network
#
# Any Keras model will do, as long as it gives *logits*: one number for each
# class, with no activation behind the last layer. This one is small, so that
# the notebook is quick. `gar_keras.cnn6()` is the network of the paper.

# %%
keras.utils.set_random_seed(SEED)
inputs = keras.Input((28, 28, 1))
x = keras.layers.Rescaling(1 / 255)(inputs)
for filters, rate in ((16, 0.2), (32, 0.3)):
    x = keras.layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
    x = keras.layers.MaxPooling2D()(x)
    x = keras.layers.Dropout(rate)(x)
x = keras.layers.Flatten()(x)
x = keras.layers.Dense(256, activation="relu")(x)
x = keras.layers.Dropout(0.5)(x)
model = keras.Model(inputs, keras.layers.Dense(10)(x))

print(f"{model.count_params():,} weights")

# %% [markdown]
# *Try*: import `cnn6`, and take the network of the README, with patience.
#
# ## Stage 1: pretraining
#
# Supervised training on the 100 labelled images.

# %%
pretrain(
    model,
    x_labeled,
    y_labeled,
    epochs=PRETRAIN_EPOCHS,
    seed=SEED,
    verbose=0,
)
error_before = error_rate(model, *test)
validation_before = error_rate(model, *validation)
guess_before = model.predict(mnist.x_test, verbose=0).argmax(axis=1)

print(f"test error after pretraining: {100 * error_before:.2f} %")

# %% [markdown]
# *Try*: `PRETRAIN_EPOCHS = 20`. GAR sharpens what the network believes: see
# what it makes of a poor one.
#
# ## Stage 2: regularization
#
# The loss is computed from $B = \max(0, Z)$, the rectified logits of a batch.
# With $N = B^\mathsf{T} B$, its diagonal as a row $v$, $V = v^\mathsf{T} v$
# and $n$ classes,
#
# $$
# \alpha(B) = \frac{\sum_{i \ne j} N_{ij}}{(n-1) \sum_{i=j} N_{ij}},
# \qquad
# \beta(B) = \frac{\sum_{i \ne j} V_{ij}}{(n-1) \sum_{i=j} V_{ij}},
# $$
#
# $$
# \mathcal{U}(B) = c_\alpha\, \alpha(B) + c_\beta\, (1 - \beta(B))
# + c_F \lVert B \rVert_F^2 .
# $$
#
# The *affinity* $\alpha$ is 0 when each image belongs to one class only. The
# *balance* $\beta$ is 1 when all classes are used equally. The next notebook
# takes these formulas apart.
#
# `regularize` puts this loss behind the logits and trains. Each batch holds 112
# unlabelled images and 16 of the labelled images. Here it is run twice, both
# times from the pretrained weights:
#
# - **without labels**, `method="gar"`: the labelled images come without their
#   labels, and $\mathcal{U}$ is all of the loss, as in the paper (whose stage 2
#   it is with `optimizer=sgd()`: by default the gradient of a step is clipped,
#   and the learning rate warms up);
# - **the default with labels**, `method="safe-gar"`, which is what you get with
#   `y_labeled` and no `method`: the cross-entropy of the 16 labels is added to
#   $\mathcal{U}$, and the logits begin at a set scale. It also lets classes be
#   uneven, which those of MNIST are not.
#
# Given validation data, the model ends with the weights of the epoch that had
# the least validation error. The 1,000 validation labels do nothing else.
# Without them, the model would end with the weights of the last epoch.

# %%
pretrained = model.get_weights()
settings = {
    "epochs": EPOCHS,
    "validation_data": validation,
    "seed": SEED,
    "verbose": 0,
}
without = regularize(model, x_labeled, x_unlabeled, **settings).history
error_without = error_rate(model, *test)

model.set_weights(pretrained)
default = regularize(
    model, x_labeled, x_unlabeled, y_labeled=y_labeled, **settings
).history
error_default = error_rate(model, *test)

print(f"test error after pretraining:     {100 * error_before:5.2f} %")
print(f"after GAR without labels:         {100 * error_without:5.2f} %")
print(f"after the default with the labels: {100 * error_default:4.2f} %")

# %% [markdown]
# That is one seed, and a smaller network than that of the README's figures: it
# does not tell which of the two is better. From here on, `model` is that of the
# default.
#
# *Try*: `EPOCHS = 27`, and `keep_best=False`, which keeps the last. As
# `regularize` goes on with the weights that it finds, set those of pretraining
# first, or run the notebook again from the network on.
#
# ## What happened on the way
#
# Watch these three curves whenever you train with GAR. The affinity should fall
# towards 0. The balance, after the first epochs, should rise towards that of
# the right labels, dashed: about $(m - 1) / (m + n - 1)$ in a batch of $m$
# images of $n$ equal classes. Far above it, images are spread over classes that
# their batch does not have.
# Neither curve needs labels, only the error does.
#
# The error may rise by a few points in the first epoch. If it stays above that
# of stage 1, look at how many images each class gets: stage 2 can lose a class
# in its first steps, and a lost class rarely comes back. `regularize` warns of
# both, and names the class.

# %%
epochs = np.arange(1, EPOCHS + 1)
target = expected_balance(128, 10)

fig, axes = plt.subplots(1, 3, figsize=(9, 3))
for name, history, color in (
    ("without labels", without, "tab:gray"),
    ("the default with labels", default, "tab:blue"),
):
    look = {"color": color, "marker": ".", "label": name}
    errors = 100 * np.array([validation_before, *history["val_error"]])
    axes[0].plot(epochs, history["affinity"], **look)
    axes[1].plot(epochs, history["balance"], **look)
    axes[2].plot([0, *epochs], errors, **look)
axes[0].set(title=r"affinity $\alpha$, log scale", yscale="log")
axes[1].axhline(target, color="black", ls="--", lw=1)
axes[1].text(
    epochs[-1], target, "right labels", ha="right", va="bottom", fontsize=8
)
axes[1].set(title=r"balance $\beta$", ylim=(None, 0.95))
axes[2].set(title="validation error, %")
axes[2].set_ylim(bottom=0)
fig.legend(
    *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2
)
for ax in axes:
    ax.set_xlabel("epoch of stage 2")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.grid(alpha=0.3)
plt.show()

# %% [markdown]
# *Try*: import `GraphActivityRegularization`, and give `regularize` the
# `layer=GraphActivityRegularization(balance=1e-9)`, from the network on. Which
# curve tells that classes are lost?
#
# ## Which images changed
#
# Stage 2, here the default's, corrects some predictions and breaks others. What
# counts is the difference.

# %%
guess_after = model.predict(mnist.x_test, verbose=0).argmax(axis=1)
right_before = guess_before == mnist.y_test
right_after = guess_after == mnist.y_test
fixed = np.flatnonzero(~right_before & right_after)
broken = np.flatnonzero(right_before & ~right_after)

print(f"fixed:  {len(fixed):5,} (wrong before, right after)")
print(f"broken: {len(broken):5,} (right before, wrong after)")

# %% [markdown]
# The first ten of each. Above each image: what the network said before stage 2,
# and what it says after. The right one is in brackets.


# %%
def show_images(fig, indices, title, text):
    fig.suptitle(title, fontsize=11)
    for ax, i in zip(fig.subplots(1, 10), indices, strict=False):
        ax.imshow(mnist.x_test[i, :, :, 0], cmap="gray_r")
        ax.set_title(text.format(guess_before[i], guess_after[i]), fontsize=10)
    for ax in fig.axes:
        ax.axis("off")


fig = plt.figure(figsize=(9, 2.8))
top, bottom = fig.subfigures(2, 1)
show_images(top, fixed[:10], "fixed: before → after", "{} → [{}]")
show_images(bottom, broken[:10], "broken: before → after", "[{}] → {}")
plt.show()

# %% [markdown]
# *Try*: `np.bincount(mnist.y_test[broken])`. Which digits break most often?
#
# ## Where to go from here
#
# - `02_bipartite_graph`: why this loss works, step by step.
# - `03_graph_of_a_network`: the graphs of a real network, before and after.
# - `04_your_own_data`: GAR in your own model, on your own data, and what to
#   watch out for.
# - `05_reading_the_results`: from a figure of the README to its runs, which had
#   all 60,000 images, the network of the paper, and several seeds.
# - `python scripts/table1.py` runs those experiments.
