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
# # The graph of a network
#
# [Notebook 02](02_bipartite_graph.ipynb) shows on small matrices how the
# rectified logits $B$ of a batch are a graph $\mathcal{G}^*$ of examples and
# classes, with the edges $M = B B^\mathsf{T}$ between examples and
# $N = B^\mathsf{T} B$ between classes, and how GAR pushes $N$ towards a scaled
# identity. Here are the same matrices of a network that learns from 100
# labelled digits, before and after stage 2.
#
# In a clone of this repository:
#
# ```bash
# pip install -e ".[notebooks]"
# jupyter lab notebooks
# ```
#
# It takes about a minute on two cores, without a GPU.

# %%
import sys

import keras
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import PowerNorm

import gar_keras
from gar_keras.datasets import load_mnist, make_split

# What draws the figures is beside the scripts of a clone.
sys.path.append("../scripts")

from reproduction.report.plots import PALETTE, figure1, graph_statistics

plt.rcParams.update({"figure.dpi": 80, "figure.constrained_layout.use": True})

# %% tags=["parameters"]
SEED = 0
PRETRAIN_EPOCHS = 500
EPOCHS = 15

# %% [markdown]
# ## 1. Real predictions
#
# A small network learns from 100 labelled images of MNIST.

# %%
mnist = load_mnist()
split = make_split(mnist.y_train, num_labeled=100, seed=SEED)
x_labeled = mnist.x_train[split.labeled]
y_labeled = mnist.y_train[split.labeled]

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

gar_keras.pretrain(
    model,
    x_labeled,
    y_labeled,
    epochs=PRETRAIN_EPOCHS,
    seed=SEED,
    verbose=0,
)
error = gar_keras.error_rate(model, mnist.x_test, mnist.y_test)
print(f"test error after pretraining: {100 * error:.2f} %")

# %% [markdown]
# As in Figure 1 of the paper we look at 250 test images. We sort them by their
# true class, so that structure becomes visible. The network does not know this
# order.

# %%
chosen = np.random.default_rng(SEED).permutation(len(mnist.x_test))[:250]
chosen = chosen[np.argsort(mnist.y_test[chosen], kind="stable")]
images = mnist.x_test[chosen]
labels = mnist.y_test[chosen]


def edges_of(model):
    """B of the 250 images: the rectified logits."""
    return np.maximum(0, model.predict(images, verbose=0))


before = edges_of(model)
print("B:", before.shape)
print(f"entries above 0: {100 * np.mean(before > 0):.0f} %")

# %% [markdown]
# The three matrices. In the perfect case, $B$ would be a staircase, $M$ ten
# blocks on the diagonal, and $N$ a diagonal. The darkest blue is the largest
# entry of each matrix; the scale is that of the square root, so that small
# entries can be seen.


# %%
def show_matrices(B, title):
    fig, axes = plt.subplots(1, 3, figsize=(9, 3.2), width_ratios=(1, 2.2, 2.2))
    fig.suptitle(title, fontsize=11)
    middles = [np.flatnonzero(labels == k).mean() for k in range(10)]
    for ax, matrix, name in zip(
        axes, (B, B @ B.T, B.T @ B), ("$B$", "$M$", "$N$"), strict=True
    ):
        norm = PowerNorm(0.5, 0, matrix.max())
        ax.imshow(matrix, cmap="Blues", norm=norm, aspect="auto")
        ax.set_title(name)
    for ax in axes[:2]:
        ax.set_yticks(middles, range(10))
    axes[1].set_xticks(middles, range(10))
    axes[2].set_yticks(range(10))
    for ax in (axes[0], axes[2]):
        ax.set_xticks(range(10))
    axes[0].set_ylabel("images, by true class")
    plt.show()


show_matrices(before, "after pretraining")

# %% [markdown]
# Affinity, balance and loss of these predictions. The loss is
# $3\,\alpha + (1 - \beta)$ and the Frobenius term, which grows with the number
# of images and with their logits: here it is 0.13, and not tiny as in notebook
# 02.

# %%
regularizer = gar_keras.GraphActivityRegularizer()
print(f"affinity {float(gar_keras.affinity(before)):.6f}")
print(f"balance  {float(gar_keras.balance(before)):.6f}")
print(f"loss     {float(regularizer.loss(before)):.6f}")

# %% [markdown]
# *Try*: 20 labels in place of 100. What do $M$ and $N$ look like?
#
# ## 2. Stage 2
#
# We train with the loss alone, on 10,000 images without labels, and keep $B$ of
# the 250 images after each epoch. They are test images: the network is not
# trained on them.

# %%
snapshots = {0: before}


def keep(epoch, logs):
    snapshots[epoch + 1] = edges_of(model)


history = gar_keras.regularize(
    model,
    x_labeled,
    mnist.x_train[:10_000],
    epochs=EPOCHS,
    seed=SEED,
    callbacks=[keras.callbacks.LambdaCallback(on_epoch_end=keep)],
    verbose=0,
).history
after = snapshots[EPOCHS]
error = gar_keras.error_rate(model, mnist.x_test, mnist.y_test)
print(f"test error after stage 2: {100 * error:.2f} %")

# %% [markdown]
# What happens to $N$. Each matrix is divided by the mean of its diagonal, so
# that a scaled identity becomes the identity.

# %%
shown = sorted({0, 1, min(3, EPOCHS), EPOCHS})
fig, axes = plt.subplots(
    1, len(shown), figsize=(2.5 * len(shown) + 0.6, 2.9), squeeze=False
)
for ax, epoch in zip(axes[0], shown, strict=True):
    N = snapshots[epoch].T @ snapshots[epoch]
    image = ax.imshow(N / np.diag(N).mean(), cmap="Blues", vmin=0, vmax=1.5)
    ax.set(xticks=range(10), yticks=range(10), title=f"$N$, epoch {epoch}")
    ax.tick_params(labelsize=7)
fig.colorbar(image, ax=axes, shrink=0.8)
plt.show()

# %% [markdown]
# The same in numbers. `identity_distance` is
# $\lVert N / s - I \rVert_F / \lVert I \rVert_F$ with the mean $s$ of the
# diagonal. It is 0 for a scaled identity. The 250 images are a random draw, so
# their true classes are not quite equal in size. Neither are the entries of
# $v$, then, even for a perfect classifier.

# %%
measures = {
    r"affinity $\alpha$": lambda B: float(gar_keras.affinity(B)),
    "distance from identity": graph_statistics.identity_distance,
    "error of the 250, %": lambda B: 100 * np.mean(B.argmax(axis=1) != labels),
}
fig, axes = plt.subplots(1, 3, figsize=(9, 2.6))
for ax, (name, measure) in zip(axes, measures.items(), strict=True):
    ax.plot(list(snapshots), [measure(B) for B in snapshots.values()], ".-")
    ax.set(title=name, xlabel="epoch of stage 2")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.grid(alpha=0.3)
axes[0].set_yscale("log")
plt.show()

# %% [markdown]
# The matrices after stage 2. The loss has seen $N$ only. $B$ and $M$ followed.

# %%
show_matrices(after, "after stage 2")

# %% [markdown]
# One image in full: of those that were wrong before and are right now, the one
# that was least decided.

# %%
fixed = np.flatnonzero(
    (before.argmax(axis=1) != labels) & (after.argmax(axis=1) == labels)
)
share = graph_statistics.edge_shares(before).max(axis=1)
i = fixed[share[fixed].argmin()] if len(fixed) else 0

fig, axes = plt.subplots(1, 3, figsize=(8, 2.4), width_ratios=(1, 2, 2))
axes[0].imshow(images[i, :, :, 0], cmap="gray_r")
axes[0].axis("off")
axes[0].set_title(f"true class {labels[i]}")
for ax, B, title in ((axes[1], before, "before"), (axes[2], after, "after")):
    ax.bar(range(10), graph_statistics.edge_shares(B)[i], color=PALETTE)
    ax.set(xticks=range(10), ylim=(0, 1), title=f"its edges {title}")
axes[1].set_ylabel("share of the weight")
plt.show()

# %% [markdown]
# *Try*: `labeled_per_batch=64, unlabeled_per_batch=64`, from the network on.
#
# ## 3. The three graphs
#
# Figure 1 of the paper, for this network and every second of the 250 images.
# `reproduction.report.plots` draws it with networkx.

# %%
figure1(
    before[::2], after[::2], labels[::2], "MNIST, 100 labels, a small network"
)

# %% [markdown]
# The same numbers for all 250 images, before and after, beside those of their
# true labels. These are not 0 or 1 everywhere, since the draw has
# more images of some classes than of others. For the components two images are
# joined if the cosine of their rows of $B$ is at least 0.75: with weights above
# 0 nearly all would be joined. The degree of a class is the sum of its shares
# of the images.

# %%
NUMBERS = {
    "strongest_share": "share of an image's strongest edge, mean",
    "degree_deviation": "degrees of the classes, deviation from m/n",
    "within_class_share": "weight of M within the true classes",
    "components": "components of G_M",
    "largest_component": "share of the largest component",
    "identity_distance": "distance of N from a scaled identity",
    "affinity": "affinity",
    "balance": "balance",
}

columns = [
    graph_statistics.graph_numbers(B, labels)
    for B in (before, after, np.eye(10)[labels])
]
print(f"{'':44} {'before':>9} {'after':>9} {'true':>9}")
for key, gloss in NUMBERS.items():
    values = (f"{column[key]:9.4g}" for column in columns)
    print(f"{gloss:44}", *values)

# %% [markdown]
# *Try*: `EPOCHS = 60`, from the top. Does the graph come nearer to ten
# components?
#
# The loss has seen $N$ only, which is small, and $M$ followed.
