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
# # Reading the results: one figure, from the README to its runs
#
# Each run of an experiment leaves a *record*, a JSON file in the folder
# `results`. A record holds the settings, the seed, the errors and the curves of
# both stages. All tables of this repository are made from records. This
# notebook takes one figure of the README and follows it: to its records, their
# settings and curves, and to how much it says.
#
# In a clone of this repository:
#
# ```bash
# pip install -e ".[notebooks]"
# jupyter lab notebooks
# ```
#
# It trains nothing and takes a few seconds. It shows whatever records there
# are: after new runs, run it again.

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import Image, Markdown, display

from gar_keras import report
from gar_keras.experiments import records
from gar_keras.report import pictures
from gar_keras.report.estimates import between
from gar_keras.report.pages import with_links_from
from gar_keras.report.published import GAR, TABLES
from gar_keras.report.runs import epochs, groups
from gar_keras.report.summary import cell_runs, summary
from gar_keras.report.tables import representative

plt.rcParams.update({"figure.dpi": 90, "figure.constrained_layout.use": True})

# %% [markdown]
# The figure: the error with GAR in a cell of the paper's tables, `mnist-100`
# for MNIST with 100 labels. Choose another cell, and the notebook is about it.

# %% tags=["parameters"]
RESULTS = Path("../results")
CELL = "mnist-100"

# %% [markdown]
# ## 1. The figure in the README
#
# The README has one line for each cell, with the paper's figures and ours. If
# there are several experiments in a cell, it shows the one with the most epochs
# of stage 2, those of all its seeds together, or one with more seeds if it is
# more than half as long.

# %%
frame = report.read_runs(RESULTS)
print(f"records: {len(frame)}")

table, place = next(
    (table, place)
    for table in TABLES.values()
    for place, column in enumerate(table.columns)
    if column.cell == CELL
)
runs = representative(frame, table.columns[place])
if runs.empty:
    raise SystemExit(
        f"No record of {CELL}. A first one of mnist-100: python "
        "scripts/table1.py --labels 100 --seeds 0"
    )
chosen = report.Estimate.of(runs.chosen)
shown_as = f"{chosen.mean:.2f}"


def show(markdown):
    """Shows a table; its links lead from here to the records."""
    display(Markdown(with_links_from(markdown, RESULTS, ".")))


paths = [RESULTS / path for path in runs.path]
folder = paths[0].relative_to(RESULTS).parent.as_posix()
head, rule, *lines = summary(frame).splitlines()
show("\n".join([head, rule, *(line for line in lines if folder in line)]))
print(f"The figure: {chosen}, test error in percent")

# %% [markdown]
# ## 2. Its records
#
# `python scripts/report.py --find` prints the runs behind a figure. This is the
# same in Python.

# %%
for line in report.find(shown_as, frame):
    print(line)

# %% [markdown]
# The folders say what a run is: the cell, then the epochs of both stages, the
# precision and a fingerprint of the settings. `read_runs` gives a row for each
# run; `results/index.csv` has the same. These are those of our figure:

# %%
for run in runs.itertuples():
    print(run.path)
    print(
        f"    seed {run.seed}, {run.pretrain_epochs} + {run.epochs} epochs, "
        f"{run.precision}, {run.minutes:.1f} minutes on {run.hardware}"
    )
    print(
        f"    error after stage 1 {run.stage_1:.2f}, chosen "
        f"{run.chosen:.2f}, last {run.last:.2f}; lost a class: {run.lost}"
    )

# %% [markdown]
# ## 3. A record and its settings
#
# This is what the first of them holds.

# %%
record = records.read(paths[0])
print(*record, sep="\n")

# %% [markdown]
# All settings are in `experiment`. With them and the seed the run can be made
# again. These are the ones that are not 0 or `None`.


# %%
def settings_of(experiment):
    """Names and values, but for what is 0 or none."""
    for name, value in experiment.items():
        if isinstance(value, dict):
            yield from settings_of(value)
        elif value:
            yield name, value


for name, value in settings_of(record["experiment"]):
    print(f"{name:20} {value}")

# %% [markdown]
# And what differs from the paper's settings. Epochs, precision and backend do
# not count as such; the README names the epochs, since the authors' code has
# 2,000 + 200.

# %%
print("different:", runs.differs.iloc[0] or "nothing")
print("epochs:", epochs(runs), "in", runs.precision.iloc[0])

# %% [markdown]
# ## 4. Its curve
#
# The test error, as `python scripts/report.py` draws it for the tables. Epoch 0
# is the end of stage 1.

# %%
with tempfile.TemporaryDirectory() as folder:
    (picture,) = pictures.draw(runs, folder, [table.name])
    display(Image(picture.read_bytes(), width=640))

# %% [markdown]
# The affinity and the balance, a line for each seed. They are means over the
# batches of an epoch, so they begin at epoch 1.

# %%
fig, axes = plt.subplots(1, 2, figsize=(6.5, 2.4))
for ax, name in zip(axes, ("affinity", "balance"), strict=True):
    for run in runs.itertuples():
        values = run.curve.get(name, [])[1:]
        at = np.arange(1, len(values) + 1)
        ax.plot(at, values, ".-", ms=3, label=f"seed {run.seed}")
    ax.set(title=name, xlabel="epoch of stage 2")
    ax.grid(alpha=0.3)
axes[0].set_yscale("log")
axes[0].legend(fontsize=8)
plt.show()

# %% [markdown]
# ## 5. The chosen epoch, the last, and the best
#
# Which epoch is *the* result? Three can be told apart:
#
# - the **chosen** one: it has the least error on the validation images. This is
#   what the paper reports, and what the README shows;
# - the **last** one: what you get without validation images;
# - the **best** one: it has the least error on the test images.
#
# The best one does not count. To find it takes the test labels, so its error is
# no longer that of unseen images: among many epochs, some have a low error by
# luck. It is at most that of the others, whatever the method, and falls with
# the number of epochs that one may choose from.


# %%
def curve(run, name):
    """Percent at each epoch of stage 2; the end of stage 1 comes first."""
    return 100 * np.array(run.curve[name])


print("test error, %    chosen (epoch)    last    best (epoch)")
for run in runs.itertuples():
    test = curve(run, "test_error")
    at = run.chosen_epoch
    best = 1 + test[1:].argmin()
    print(
        f"seed {run.seed:2} {test[at]:14.2f} ({at:3}) {test[-1]:11.2f}"
        f" {test[best]:7.2f} ({best:3})"
    )
print("mean, chosen:", chosen)
print("mean, last:  ", report.Estimate.of(runs["last"]))

# %% [markdown]
# The seed with the largest difference between chosen and last:


# %%
furthest = (runs.chosen - runs["last"]).abs().to_numpy().argmax()
run = runs.iloc[furthest]
test, validation = (curve(run, f"{s}_error") for s in ("test", "val"))
at = np.arange(len(test))
shown = at >= len(test) // 3

fig, ax = plt.subplots(figsize=(6.5, 2.8))
ax.plot(at[shown], validation[shown], ".-", color="0.7")
ax.plot(at[shown], test[shown], ".-", color="tab:blue")
for name, k, marker in (
    ("chosen", run.chosen_epoch, "o"),
    ("last", len(test) - 1, "s"),
    ("best", 1 + test[1:].argmin(), "*"),
):
    label = f"{name}: epoch {k}, {test[k]:.2f} %"
    ax.plot(k, test[k], marker, ms=10, mfc="none", mec="black", label=label)
ax.legend(fontsize=8)
ax.set(
    title=f"seed {run.seed}: test error (blue), validation error (grey)",
    xlabel="epoch of stage 2",
    ylabel="error, %",
)
ax.grid(alpha=0.3)
plt.show()

# %% [markdown]
# The validation error moves in steps, since its images are few. So the choice
# is not perfect, and that is part of the method.
#
# ## 6. Its interval
#
# The seeds are a sample: other labelled images, other weights. "±" is the
# standard deviation $s$, which says how much single runs differ. How well the
# *mean* of $n$ runs is known is another matter. The interval that holds it with
# 95 % confidence, if errors are about normal, is
#
# $$
# \bar x \pm t_{n-1} \frac{s}{\sqrt n},
# $$
#
# with $t_{n-1}$ from Student's distribution: 4.3 for three seeds, 2.3 for ten.

# %%
published = table.rows[GAR][place]
interval = chosen.interval()
print(f"ours:  {chosen}, interval {between(interval)}")
print(f"paper: {published} (n = 10)")
if interval:
    low, high = interval
    inside = "inside" if low <= published.error <= high else "outside"
    print(f"the paper's mean is {inside} our interval")

# %%
errors = [*runs.chosen]
fig, ax = plt.subplots(figsize=(6.5, 1.8))
ax.plot(errors, np.zeros(len(errors)), "o", mfc="none", label="our seeds")
ax.errorbar(
    chosen.mean,
    1,
    xerr=interval and (high - low) / 2,
    fmt="D",
    color="tab:blue",
    capsize=4,
    label="our mean, 95 % interval",
)
ax.errorbar(
    published.error,
    2,
    xerr=published.spread,
    fmt="D",
    color="black",
    capsize=4,
    label="the paper's mean ± s",
)
ax.set(xlabel="test error, %", yticks=[], ylim=(-0.7, 2.7))
ax.set_xlim(left=0)
fig.legend(fontsize=8, loc="outside right center")
plt.show()

# %% [markdown]
# That a figure is inside says little where the interval is wide: then it would
# hold many others as well. Nor is the paper's mean exact: the tables give the
# interval of the difference, `chosen.interval_above(published.estimate)`. More
# seeds make it narrower. If the seeds went on to differ as these do:

# %%
if interval:
    for n in (3, 5, 10, 20):
        low, high = report.Estimate(chosen.mean, chosen.deviation, n).interval()
        print(f"n = {n:2}: {chosen.mean:.2f} ± {(high - low) / 2:.2f}")

# %% [markdown]
# ## 7. What $n = 1$ means
#
# One draw. It has no deviation and no interval, and can be as far off as any
# single seed is. Had we run only one of our seeds, the README would show one of
# these:

# %%
print(", ".join(f"{error:.2f}" for error in sorted(errors)))

# %% [markdown]
# So a difference between two figures with $n = 1$ means nothing unless it is
# much larger than what seeds differ by. With the same seeds, and so the same
# labelled images, compare seed by seed: what the draw of the labels does to
# both is then left out. GAR against its own stage 1:

# %%
for run in runs.itertuples():
    print(
        f"seed {run.seed:2}: {run.stage_1:6.2f} -> {run.chosen:5.2f}, "
        f"gain {run.stage_1 - run.chosen:5.2f} points"
    )

# %% [markdown]
# The cells of that table in the README that are one draw:

# %%
single = [name for name, g in cell_runs(frame).items() if len(g) == 1]
print("\n".join(single) or "none")

# %% [markdown]
# ## Does the loss know the error?
#
# One thing that takes all records. In real life there are no test labels. Can
# the affinity tell when the network is good? Each dot is an epoch of a run of
# GAR without additions.

# %%
KINDS = {
    "collapsed: balance below a half": "black",
    "100 classes": "tab:red",
    "small NORB": "tab:orange",
    "X_U from InfiMNIST": "tab:cyan",
    "MNIST": "tab:blue",
}


def kind_of(group):
    """One of `KINDS`, or `None`."""
    first = group.iloc[0]
    # The data, the labels, the epochs and so on may be any.
    if first.differs or first.method != "gar" or "svhn" in first.dataset:
        return None
    if group.balance_end.mean() < 0.5:
        return "collapsed: balance below a half"
    if first.dataset == "mnist-pairs":
        return "100 classes"
    if first.dataset.startswith("norb"):
        return "small NORB"
    infinite = first.unlabeled == "infimnist"
    return "X_U from InfiMNIST" if infinite else "MNIST"


fig, ax = plt.subplots(figsize=(7.5, 4))
for name, color in KINDS.items():
    curves = [
        curve for g in groups(frame) if kind_of(g) == name for curve in g.curve
    ]
    if curves:
        affinity, error = (
            np.concatenate([curve[key][1:] for curve in curves]).astype(float)
            for key in ("affinity", "test_error")
        )
        ax.plot(affinity, 100 * error, ".", ms=4, color=color, label=name)
ax.set(
    xlabel=r"affinity $\alpha$ of the epoch",
    ylabel="test error, %",
    xscale="log",
    yscale="log",
)
ax.yaxis.set_major_formatter("{x:g}")
ax.legend(fontsize=8, markerscale=2, loc="lower right")
ax.grid(alpha=0.3)
plt.show()

# %% [markdown]
# Within a run both tend to fall together, since both change with time. That
# does not make the one a measure of the other: at the same affinity the errors
# of different data lie far apart, and a network that has collapsed has a low
# affinity and a high error.
#
# ## Where to go from here
#
# - [`results/README.md`](../results/README.md) has the cells, and the README of
#   each cell its experiments; [Reproduction](../docs/reproduction.md) has the
#   tables.
# - `python scripts/table1.py` makes more records, and so do `table2.py` and
#   `table3.py`. They can be stopped at any time and go on where they were.
# - `python scripts/report.py --results runs` makes the tables of yours.
