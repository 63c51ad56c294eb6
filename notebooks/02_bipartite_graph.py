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
# # The bipartite graph: the mathematics of GAR, step by step
#
# This notebook follows sections 3.1 to 3.3 of the paper (Kilinc and Uysal,
# 2017) and uses its symbols. Read it with the paper beside you. Equation
# numbers are the paper's.
#
# | symbol | shape | meaning |
# | --- | --- | --- |
# | $m$, $n$ | | number of examples, number of classes |
# | $Z$ | $m \times n$ | logits: values of the last layer, no activation |
# | $B$ | $m \times n$ | $\max(0, Z)$, the edges between examples and classes |
# | $A^*$ | $(m+n) \times (m+n)$ | adjacency matrix of the bipartite graph |
# | $M$ | $m \times m$ | $B B^\mathsf{T}$, edges between examples |
# | $N$ | $n \times n$ | $B^\mathsf{T} B$, edges between classes |
# | $v$ | $1 \times n$ | diagonal of $N$ |
# | $V$ | $n \times n$ | $v^\mathsf{T} v$ |
# | $\alpha$, $\beta$, $\mathcal{U}$ | | affinity, balance, the loss |
#
# All matrices are small and made by hand.
# [Notebook 03](03_graph_of_a_network.ipynb) looks at those of a real network.
#
# In a clone of this repository:
#
# ```bash
# pip install -e ".[notebooks]"
# jupyter lab notebooks
# ```
#
# It takes a few seconds.

# %%
import sys

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

import gar_keras

# What draws the figures is beside the scripts of a clone.
sys.path.append("../scripts")

from reproduction.report.plots import PALETTE, graph_statistics

plt.rcParams.update({"figure.dpi": 80, "figure.constrained_layout.use": True})
np.set_printoptions(precision=3, suppress=True)

# %% tags=["parameters"]
SEED = 0
STARTS = 30

# %% [markdown]
# ## 1. Predictions are a graph
#
# Take $m = 6$ examples and $n = 3$ classes. This is the *perfect case* of
# section 3.2: each example belongs to one class with probability 1, and each
# class has $m/n = 2$ examples.

# %%
m, n = 6, 3
B = np.repeat(np.eye(n), m // n, axis=0)
print(B)

# %% [markdown]
# The examples and the classes are the nodes of a graph $\mathcal{G}^*$.
# $B_{ij}$ is the weight of the edge between example $i$ and class $j$. There
# are no edges among the examples and none among the classes: the graph is
# *bipartite*. Its adjacency matrix has two blocks of zeros (equation 4):
#
# $$
# A^* = \begin{pmatrix} 0 & B \\ B^\mathsf{T} & 0 \end{pmatrix}.
# $$

# %%
A = np.block([[np.zeros((m, m)), B], [B.T, np.zeros((n, n))]])
print(A)

# %% [markdown]
# *Try*: give one example a probability of 0.5 for each of two classes. Which
# entries of $A^*$ change?
#
# ## 2. Two steps on the graph
#
# $(A^{*2})_{kl}$ sums, over the walks of two edges from node $k$ to node $l$,
# the products of their weights. With weights of 0 and 1 it counts the walks.
# From an example, the first step leads to a class, the second back to an
# example. So $A^{*2}$ falls apart into two graphs (equation 5):
#
# $$
# A^{*2}
# = \begin{pmatrix} B B^\mathsf{T} & 0 \\ 0 & B^\mathsf{T} B \end{pmatrix}
# = \begin{pmatrix} M & 0 \\ 0 & N \end{pmatrix}.
# $$
#
# $\mathcal{G}_\mathcal{M}$ connects examples with the edges $M$, and
# $\mathcal{G}_\mathcal{N}$ connects classes with the edges $N$.

# %%
M = B @ B.T
N = B.T @ B
blocks = np.block([[M, np.zeros((m, n))], [np.zeros((n, m)), N]])
print(A @ A)
print("equal to the blocks M and N:", np.array_equal(A @ A, blocks))


# %% [markdown]
# We draw all three. Examples are small and have the colour of their true class.
# Classes are large. Self-loops are left out.


# %%
def draw(ax, weights, places, colors, sizes):
    """Draws a graph from its matrix of edges, without self-loops."""
    edges = nx.from_numpy_array(np.triu(weights, 1))
    widths = [2.0 * w for *_, w in edges.edges(data="weight")]
    nx.draw_networkx_nodes(
        edges,
        places,
        ax=ax,
        node_color=colors,
        node_size=sizes,
        edgecolors="black",
        linewidths=0.6,
    )
    nx.draw_networkx_edges(edges, places, ax=ax, width=widths, alpha=0.7)
    ax.margins(0.15)
    ax.axis("off")


def draw_bipartite(ax, B):
    """Draws G*: examples on the left, classes on the right."""
    m, n = B.shape
    A = np.block([[np.zeros((m, m)), B], [B.T, np.zeros((n, n))]])
    left = [(0, -i) for i in range(m)]
    right = [(1, -(m - 1) * (j + 0.5) / n) for j in range(n)]
    truth = np.arange(m) * n // m
    colors = [PALETTE[k] for k in [*truth, *range(n)]]
    draw(ax, A, left + right, colors, [50] * m + [260] * n)


def circle(k):
    """k places on a circle."""
    turn = 2 * np.pi * np.arange(k) / k
    return np.stack([np.sin(turn), np.cos(turn)], axis=1)


truth = np.repeat(np.arange(n), m // n)
fig, axes = plt.subplots(1, 3, figsize=(8, 2.4))
draw_bipartite(axes[0], B)
draw(axes[1], M, circle(m), [PALETTE[k] for k in truth], 50)
draw(axes[2], N, circle(n), PALETTE[:n], 260)
axes[0].set_title(r"$\mathcal{G}^*$, edges $B$")
axes[1].set_title(r"$\mathcal{G}_\mathcal{M}$, edges $M$")
axes[2].set_title(r"$\mathcal{G}_\mathcal{N}$, edges $N$")
plt.show()

# %% [markdown]
# *Try*: $A^{*3}$. Which nodes do walks of three edges connect?
#
# ## 3. The perfect case, three times over
#
# Equation 7 says that three statements about the perfect case mean the same.
#
# **First:** $\mathcal{G}^*$ is $(1, m/n)$-biregular. Every example has degree
# 1, and every class has degree $m/n$ (equation 6).

# %%
print("degrees of the examples:", B.sum(axis=1))
print("degrees of the classes: ", B.sum(axis=0))

# %% [markdown]
# **Second:** $N = \frac{m}{n} I$. No two classes share an example, and all
# classes are equally large.

# %%
print(N)

# %% [markdown]
# **Third:** $B$ is a best embedding of $\mathcal{G}_\mathcal{M}$. A graph
# method such as Laplacian eigenmaps looks for the $Z$ that minimizes
#
# $$
# \operatorname{Tr}(Z^\mathsf{T} L_\mathcal{M} Z)
# \quad\text{subject to}\quad Z^\mathsf{T} D_\mathcal{M} Z = I,
# \qquad L_\mathcal{M} = D_\mathcal{M} - M,
# $$
#
# with the degrees of the examples on the diagonal of $D_\mathcal{M}$. The trace
# cannot be negative. $B$, scaled to meet the constraint, reaches 0. (It is not
# the only one: with $Q$ orthogonal, $BQ$ reaches 0 too.)

# %%
D = np.diag(M.sum(axis=1))
L = D - M
Z = B / np.sqrt(np.diag(B.T @ D @ B))
print("Z'DZ =")
print(Z.T @ D @ Z)
print("Tr(Z'LZ) =", np.trace(Z.T @ L @ Z))

# %% [markdown]
# The Laplacian has one eigenvalue 0 for each connected component of
# $\mathcal{G}_\mathcal{M}$. In the perfect case there is one component for each
# class.

# %%
print("eigenvalues of L:", np.linalg.eigvalsh(L).round(6) + 0.0)
print("components:", graph_statistics.components(B)[0])

# %% [markdown]
# This is the idea of GAR. Nobody needs to build the $m \times m$ graph of the
# examples, which is what makes graph methods expensive. It is enough to push
# the small $n \times n$ matrix $N$ towards a scaled identity. The other two
# statements follow, as long as the entries of $B$ are zeros and ones.
#
# *Try*: $m = 9$ examples. What becomes of $N$?
#
# ## 4. Two numbers for "a scaled identity"
#
# A scaled identity has zeros off the diagonal, and equal entries on it. The
# *affinity* measures the first, the *balance* the second (equations 10 and 11):
#
# $$
# \alpha(B) = \frac{\sum_{i \ne j} N_{ij}}{(n-1) \sum_{i=j} N_{ij}},
# \qquad
# \beta(B) = \frac{\sum_{i \ne j} V_{ij}}{(n-1) \sum_{i=j} V_{ij}},
# \qquad v = [N_{11} \dots N_{nn}], \quad V = v^\mathsf{T} v.
# $$


# %%
def off_diagonal_over_diagonal(S):
    """Sum off the diagonal over (n - 1) times the sum on it."""
    diagonal = np.trace(S)
    return (S.sum() - diagonal) / ((len(S) - 1) * diagonal)


def affinity(B):
    return off_diagonal_over_diagonal(B.T @ B)


def balance(B):
    v = np.diag(B.T @ B)
    return off_diagonal_over_diagonal(np.outer(v, v))


print("affinity of the perfect case:", affinity(B))
print("balance of the perfect case: ", balance(B))

# %% [markdown]
# Now we break the perfect case in five ways and see what the two numbers say.

# %%
doubtful = B.copy()
doubtful[1] = [0.5, 0.5, 0]
uneven = np.eye(n)[[0, 0, 0, 0, 1, 2]]
collapsed = np.eye(n)[[0] * m]
alike = np.full((m, n), 1 / n)
swapped = B[:, [2, 0, 1]]
cases = {
    "perfect": B,
    "one doubtful\nexample": doubtful,
    "uneven\nclasses": uneven,
    "collapse into\none class": collapsed,
    "all examples\nalike": alike,
    "class names\nswapped": swapped,
}

fig, axes = plt.subplots(1, len(cases), figsize=(11, 3))
for ax, (name, case) in zip(axes, cases.items(), strict=True):
    draw_bipartite(ax, case)
    ax.set_title(
        f"{name}\n"
        rf"$\alpha$ = {affinity(case):.2f}, $\beta$ = {balance(case):.2f}",
        fontsize=10,
    )
plt.show()

# %% [markdown]
# - A doubtful example raises the affinity. It also lowers the balance a little:
#   two halves are less than a whole in $v$, since $0.5^2 + 0.5^2 < 1$.
# - Uneven classes lower the balance.
# - A collapse into one class has the best affinity and the worst balance. So
#   affinity alone would not do.
# - Where all examples are alike, all classes are equally used: the best balance
#   and the worst affinity. So balance alone would not do either.
# - Both numbers are blind to the *names* of the classes. Every prediction of
#   the last case is wrong, and it looks perfect. The names can only come from
#   pretraining.
#
# The loss puts the two together, and keeps the activations from growing
# (equation 12, with the coefficients of the paper):
#
# $$
# \mathcal{U}(B) = c_\alpha\, \alpha(B) + c_\beta\, (1 - \beta(B))
# + c_F \lVert B \rVert_F^2,
# \qquad c_\alpha = 3, \quad c_\beta = 1, \quad c_F = 10^{-6}.
# $$

# %%
regularizer = gar_keras.GraphActivityRegularizer()
for name, case in cases.items():
    by_hand = 3 * affinity(case) + (1 - balance(case)) + 1e-6 * np.sum(case**2)
    by_package = float(regularizer.loss(case))
    name = name.replace("\n", " ")
    print(f"{name:24} {by_hand:.6f} by hand, {by_package:.6f} by gar_keras")

# %% [markdown]
# One caveat. $N$ cannot see everything. Below, $N = \frac{m}{n} I$, as in the
# perfect case, and the loss is as low, but half of the examples belong to no
# class at all. With weights other than 0 and 1, a scaled identity $N$ does not
# imply that each example belongs to one class.

# %%
silent = B.copy()
silent[::2] *= np.sqrt(2)
silent[1::2] = 0
print(silent)
print("N is a scaled identity:", np.allclose(silent.T @ silent, N))
print(f"affinity {affinity(silent):.2f}, balance {balance(silent):.2f}")

# %% [markdown]
# ### Without the matrices
#
# Neither $N$ nor $V$ needs to be formed. With the row sums
# $r_i = \sum_j B_{ij}$ and the energies $v_j = \sum_i B_{ij}^2$,
#
# $$
# \sum_{i \ne j} N_{ij} = \sum_{ij} B_{ij}\, (r_i - B_{ij}),
# \qquad \sum_{i=j} N_{ij} = \sum_j v_j,
# \qquad \sum_{ij} V_{ij} = \Big(\sum_j v_j\Big)^2,
# \qquad \sum_{i=j} V_{ij} = \sum_j v_j^2 .
# $$
#
# So it takes $O(mn)$ operations, and $m + n$ numbers to keep. This is how the
# package does it.


# %%
def affinity_and_balance(B):
    """The same from the row sums r and the energies v."""
    r, v = B.sum(axis=1, keepdims=True), np.sum(B**2, axis=0)
    rest = B.shape[1] - 1
    affinity = np.sum(B * (r - B)) / (rest * v.sum())
    balance = (v.sum() ** 2 - np.sum(v**2)) / (rest * np.sum(v**2))
    return affinity, balance


wide = np.random.default_rng(SEED).random((128, 10))
same = np.allclose(affinity_and_balance(wide), (affinity(wide), balance(wide)))
print("the same:", same)

# %% [markdown]
# ### Why the logits are rectified
#
# So far $B$ held probabilities, as in section 3.1 of the paper. The network is
# regularized before the softmax, on its logits $Z$ (section 3.3).
#
# $M_{ik} = \sum_j B_{ij} B_{kj}$ should be large for examples of the same
# class. The product of two negative logits is positive. Without
# $B = \max(0, Z)$ (equation 9), two examples would be tied together by a class
# that *neither* of them belongs to.

# %%
logits = np.array([[3.0, -4.0, 0.0], [0.0, -4.0, 3.0]])
rectified = np.maximum(0, logits)
print("edge between the two, from the logits:   ", logits[0] @ logits[1])
print("edge between the two, from rectified ones:", rectified[0] @ rectified[1])

# %% [markdown]
# ### The gradient
#
# Which way does the loss push an entry of $B$? Write
# $r_i = \sum_j B_{ij}$ for the sum of row $i$. From
# $\sum_{i \ne j} N_{ij} = \sum_{ij} B_{ij} (r_i - B_{ij})$ and
# $\operatorname{Tr} N = \lVert B \rVert_F^2$ it follows that
#
# $$
# \frac{\partial \alpha}{\partial B_{ij}}
# = 2\, \frac{r_i - \big(1 + (n-1)\,\alpha\big) B_{ij}}
#            {(n-1) \operatorname{Tr} N},
# \qquad
# \frac{\partial \beta}{\partial B_{ij}}
# = 4 B_{ij}\, \frac{s - \big(1 + (n-1)\,\beta\big)\, v_j}
#            {(n-1) \sum_k v_k^2},
# \qquad s = \sum_k v_k .
# $$


# %%
def affinity_gradient(B):
    n = B.shape[1]
    r = B.sum(axis=1, keepdims=True)
    top = r - (1 + (n - 1) * affinity(B)) * B
    return 2 * top / ((n - 1) * np.sum(B**2))


def balance_gradient(B):
    n = B.shape[1]
    v = np.sum(B**2, axis=0)
    top = v.sum() - (1 + (n - 1) * balance(B)) * v
    return 4 * B * top / ((n - 1) * np.sum(v**2))


# %% [markdown]
# A check against differences: nudge each entry of a random $B$ a little, both
# ways, and see how the function changes.


# %%
def by_differences(function, B, step=1e-6):
    gradient = np.zeros_like(B)
    for place in np.ndindex(B.shape):
        nudge = np.zeros_like(B)
        nudge[place] = step
        change = function(B + nudge) - function(B - nudge)
        gradient[place] = change / (2 * step)
    return gradient


random = np.random.default_rng(SEED).uniform(0.5, 2, (5, 4))
for name, formula, function in (
    ("affinity", affinity_gradient, affinity),
    ("balance", balance_gradient, balance),
):
    same = np.allclose(formula(random), by_differences(function, random))
    print(f"{name}: formula and differences agree: {same}")

# %% [markdown]
# Read the affinity's gradient for one example. It falls as $B_{ij}$ grows:
# within a row, a weaker edge is always pushed down harder than a stronger one.
# A step against the gradient makes an edge grow if, and only if, it has more
# than a certain share of its row:
#
# $$
# \frac{B_{ij}}{r_i} > \frac{1}{1 + (n-1)\,\alpha}.
# $$
#
# So the strong edge wins and the weak ones fade, until the rectifier stops them
# at 0. This is how a network that is *mostly* sure becomes sure. It is also how
# a wrong first choice becomes a confident one.
#
# The balance works on whole classes. Those with a large $v_j$ shrink, those
# with a small one grow, each entry in proportion to its size.
#
# Below is the same undecided example in two batches. In the first, all classes
# are equally used. In the second, most examples are in class 0. The arrows show
# $-\partial\,\mathcal{U} / \partial B_{ij}$ (the tiny Frobenius term left out).

# %%
example = [1.5, 0.5, 0.25]
even = np.array([example, [0.25, 1.5, 0.5], [0.5, 0.25, 1.5]])
crowded = np.array([example, [2.5, 0, 0], [2.5, 0, 0], [0.5, 0.25, 1.5]])

fig, axes = plt.subplots(1, 2, figsize=(8, 2.8), sharey=True)
for ax, batch, title in (
    (axes[0], even, "classes equally used"),
    (axes[1], crowded, "class 0 crowded"),
):
    push = balance_gradient(batch)[0] - 3 * affinity_gradient(batch)[0]
    ax.bar(range(n), example, color=PALETTE[:n], width=0.5)
    for j in range(n):
        ax.annotate(
            "",
            (j, example[j] + push[j]),
            (j, example[j]),
            arrowprops={"arrowstyle": "-|>", "lw": 2, "color": "black"},
        )
    limit = 1 / (1 + (n - 1) * affinity(batch))
    ax.axhline(limit * sum(example), color="0.4", ls="--", lw=1)
    ax.set(xticks=range(n), xlabel="class $j$", title=title, ylim=(-0.5, 2))
axes[0].set_ylabel("$B_{ij}$ of the example")
plt.show()

# %% [markdown]
# Dashed: where an edge must end for the affinity to let it grow. On the right
# it is higher, since two of the others are decided and $\alpha$ is lower. And
# the balance acts against the strong edge, since class 0 has too much already.

# %% [markdown]
# ### How a class is lost
#
# Three facts are enough, each of which can be seen on a linear network.
#
# **1. Only the direction of $B$ counts.** Affinity and balance are ratios: with
# $sB$ in place of $B$ both stay as they are. So their gradient at $sB$ is
# $1/s$ of that at $B$. The smaller the logits, the longer the steps.


# %%
def loss_gradient(B):
    """Of the loss without its tiny Frobenius term, where B is above 0."""
    return 3 * affinity_gradient(B) - balance_gradient(B)


for s in (4, 2, 1, 0.5):
    size = np.linalg.norm(loss_gradient(s * random))
    print(f"scale {s:3}: norm of the gradient {size:.3f}")

# %% [markdown]
# **2. The weak edges are pushed down, and the strong ones go with them.** The
# logits of a network share their features. Here every example has one feature
# in common with all others, and three that tell its class, with noise:
# $Z = XW$. To push down the weak edges of an example lowers the weight of the
# common feature, which lowers all the logits. The scale falls, so the steps
# grow (fact 1), and the momentum of 0.95 carries them on.
#
# **3. Below 0 there is no gradient.** If the logits of one class are below 0
# for all examples, its column of $B$ is 0, and so is the gradient of all of its
# weights. Nothing calls the class back. In a deep network the layers before
# may, by chance: their features go on changing.
#
# Below, the same weights are trained as by the authors (learning rate 0.01,
# Nesterov momentum of 0.95), and with shorter first steps: the gradient clipped
# to a norm of 1, and a learning rate that rises over the first 100 steps.

# %%
COMMON, NOISE, STEPS = 3.0, 0.3, 200


def descend(seed, scale, clip=np.inf, warmup=1, pull=balance_gradient):
    """The energies v, the mean top logit and the gradient norm by step."""
    rng = np.random.default_rng(seed)
    W = np.full((4, 3), 0.25 / COMMON)
    W[1:] = np.eye(3) + 0.15 * rng.normal(size=(3, 3))
    W, velocity = scale * W, np.zeros_like(W)
    energies, top, norms = [], [], []
    for step in range(STEPS):
        classes = rng.integers(3, size=24)
        own = np.eye(3)[classes] + NOISE * rng.normal(size=(24, 3))
        X = np.hstack([np.full((24, 1), COMMON), own])
        Z = X @ W
        B = np.maximum(0, Z)
        energies.append(np.sum(B**2, axis=0))
        if not B.any():
            break
        push = 3 * affinity_gradient(B) - pull(B)
        gradient = X.T @ (push * (Z > 0))
        top.append(Z.max(axis=1).mean())
        norms.append(np.linalg.norm(gradient))
        change = 0.01 * gradient * min(1, clip / max(norms[-1], 1e-9))
        change *= min(1, (step + 1) / warmup)
        velocity = 0.95 * velocity - change
        W = W + 0.95 * velocity - change
    return np.array(energies), top, norms


# %%
ways = {
    "as by the authors": {},
    "clipped": {"clip": 1.0},
    "warm-up": {"warmup": 100},
    "clipped, with warm-up": {"clip": 1.0, "warmup": 100},
}

fig, axes = plt.subplots(2, 2, figsize=(8, 4.5), sharex=True, sharey="row")
for column, way in zip(
    axes.T, ("as by the authors", "clipped, with warm-up"), strict=True
):
    energies, top, norms = descend(seed=SEED, scale=2, **ways[way])
    before = ", before the clip" if "clip" in ways[way] else ""
    shares = energies / energies.sum(axis=1, keepdims=True)
    for j in range(3):
        column[0].plot(shares[:, j], color=PALETTE[j], label=f"class {j}")
    column[1].plot(top, color="black", label="mean top logit")
    column[1].plot(norms, color="0.55", label=f"norm of the gradient{before}")
    column[0].set_title(way)
    column[1].set(xlabel="step")
axes[0, 0].set_ylabel("share of the energy")
axes[1, 0].set_ylim(top=8)
for ax in axes[:, 1]:
    ax.legend(fontsize=8)
plt.show()

# %% [markdown]
# Left: the logits fall, the gradient grows, and two of the three classes are
# left without energy. Right: the gradient grows as well, but the steps stay
# short, and all three classes stay.
#
# How often? From 30 initializations each, with logits that begin at three
# scales. A class counts as lost if its energy at the last step is at most a
# thousandth of the mean.

# %%
for scale in (1, 2, 4):
    print(f"weights times {scale}:")
    for way, options in ways.items():
        ends = [
            descend(seed, scale, **options)[0][-1] for seed in range(STARTS)
        ]
        lost = sum(v.min() <= 1e-3 * v.mean() for v in ends)
        print(f"  {way}: {lost} of {STARTS} lose a class")

# %% [markdown]
# *Try*: in `descend` leave out the affinity, then the balance. Which term,
# alone, loses classes?
#
# So `regularize` does both by default, wherever the loss has GAR in it. With
# the network of the paper, on MNIST, fewer outputs died in the first epoch:
# [the study](../results/studies.md#first-epoch).
#
# ### What holds a class, and what does not
#
# Why does the balance not save the class that is being lost? Its gradient
# has the factor $\partial v_j / \partial B_{ij} = 2 B_{ij}$: the less is left
# of an output, the less it is held. The authors' code made the balance of the
# column sums of $B$ until May 2017, $v_j = \sum_i B_{ij}$
# (`balance_of="column sums"`). Then that factor is 1.
#
# Below, three classes have two examples each, and the logits of class 0 are
# multiplied by a factor that falls to 0.


# %%
def sums_gradient(B):
    """Of the balance of the column sums."""
    n = B.shape[1]
    v = B.sum(axis=0)
    beta = (v.sum() ** 2 - np.sum(v**2)) / ((n - 1) * np.sum(v**2))
    top = v.sum() - (1 + (n - 1) * beta) * v
    return np.ones_like(B) * 2 * top / ((n - 1) * np.sum(v**2))


left = np.linspace(1, 0.01, 100)
batches = [np.repeat(np.eye(n), 2, axis=0) * 1.2 + 0.3 for _ in left]
for B, factor in zip(batches, left, strict=True):
    B[:, 0] *= factor
pushes = {
    "affinity, down": [3 * affinity_gradient(B)[0, 0] for B in batches],
    "balance of the diagonal, up": [balance_gradient(B)[0, 0] for B in batches],
    "balance of column sums, up": [sums_gradient(B)[0, 0] for B in batches],
}
fig, ax = plt.subplots(figsize=(6, 3))
for name, push in pushes.items():
    ax.plot(left, push, label=name)
ax.set(xlabel="what is left of class 0", ylabel="push on its own example")
ax.set(xlim=(1, 0), ylim=(0, None))
ax.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()

# %% [markdown]
# With the diagonal the affinity wins below a fifth, and the class is lost. With
# column sums it never does. And the linear network:

# %%
for scale in (1, 2, 4):
    ends = [
        descend(seed, scale, pull=sums_gradient)[0][-1]
        for seed in range(STARTS)
    ]
    lost = sum(v.min() <= 1e-3 * v.mean() for v in ends)
    print(f"weights times {scale}: {lost} of {STARTS} lose a class")

# %% [markdown]
# With small logits the first steps are too long for either. On MNIST, with the
# paper's network and 100 labels, column sums lose a class in 0 of 10 runs and
# the diagonal in 2 of those beside them, but where neither loses one the
# diagonal has the lower mean error: [the study of the
# balance](../results/studies.md#balance).
#
# ## What to remember
#
# - Predictions $B$ define a graph of the examples, $M = B B^\mathsf{T}$, and a
#   graph of the classes, $N = B^\mathsf{T} B$.
# - Affinity makes each example decide. Balance asks for all classes to be in
#   use, but hardly holds one that is nearly lost. Neither works without the
#   other.
# - The loss does not know the names of the classes, nor whether a decision is
#   right. It sharpens what pretraining began.
