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
from gar_keras.experiments.placement import path_of_record
from gar_keras.report.groups import group
from gar_keras.report.overview import RECORD, rows_of
from gar_keras.report.plots import save
from gar_keras.report.plots.curves import learning_curves
from gar_keras.report.published import GAR, TABLES
from gar_keras.report.summary import summary_markdown

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
found = records.read_all(RESULTS)
print(f"records: {len(found)}")

table, place = next(
    (table, place)
    for table in TABLES.values()
    for place, column in enumerate(table.columns)
    if column.cell == CELL
)
runs = report.representative(found, table.columns[place])
if runs is None:
    raise SystemExit(
        f"No record of {CELL}. A first one of mnist-100: python "
        "scripts/table1.py --labels 100 --seeds 0"
    )
chosen = runs.error("chosen_error")
shown_as = f"{chosen.mean:.2f}"


def show(markdown):
    """Shows a table; its links lead from here to the records."""
    display(Markdown(report.with_links_from(markdown, RESULTS, ".")))


paths = [path_of_record(record, RESULTS) for record in runs.records]
folder = paths[0].relative_to(RESULTS).parent.as_posix()
head, rule, *lines = summary_markdown(found, RESULTS).splitlines()
show("\n".join([head, rule, *(line for line in lines if folder in line)]))
print(f"The figure: {chosen}, test error in percent")

# %% [markdown]
# ## 2. Its records
#
# `python scripts/report.py --find` prints the rows of all tables that show a
# figure, and the runs behind them. This is the same in Python.

# %%
for row in report.find(shown_as, found, RESULTS):
    print(f"{row.heading}: {row.row[0]}")
    for target in row.targets:
        print(f"    {target}")

# %% [markdown]
# The folders say what a run is: the study or table, the cell, then the epochs
# of both stages and what differs from the paper. `results/index.csv` has a line
# for each run. These are those of our figure:

# %%
index = {line.path: line for line in report.index(found, RESULTS)}
for path in paths:
    line = index[path.relative_to(RESULTS).as_posix()]
    print(path.name)
    print(
        f"    seed {line.seed}, {line.pretrain_epochs} + {line.epochs} epochs, "
        f"{line.precision}, {line.minutes} minutes on {line.device}"
    )
    print(
        f"    error after stage 1 {line.after_stage_1:.2f}, chosen "
        f"{line.chosen:.2f}, last {line.last:.2f}; lost a class: "
        f"{line.lost_class}"
    )

# %% [markdown]
# ## 3. A record and its settings
#
# This is what the first of them holds.

# %%
record = runs.records[0]
for key in record:
    print(f"{key:20} {RECORD.get(key, '')}")

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
print("different:", runs.changes_text().strip(", ") or "nothing")
print("epochs:", runs.epochs_text(), "in", runs.settings["precision"])

# %% [markdown]
# ## 4. Its curve
#
# The test error, as `python scripts/report.py` draws it for the tables. Epoch 0
# is the end of stage 1.

# %%
with tempfile.TemporaryDirectory() as folder:
    picture = Path(folder) / "curves.png"
    save(learning_curves([runs]), picture)
    display(Image(picture.read_bytes(), width=640))

# %% [markdown]
# The affinity and the balance, a line for each seed. They are means over the
# batches of an epoch, so they begin at epoch 1.

# %%
fig, axes = plt.subplots(1, 2, figsize=(6.5, 2.4))
for ax, name in zip(axes, ("affinity", "balance"), strict=True):
    for record in runs.records:
        values = record["regularization"]["curve"].get(name, [])[1:]
        epochs = np.arange(1, len(values) + 1)
        ax.plot(epochs, values, ".-", ms=3, label=f"seed {record['seed']}")
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
def curve(record, name):
    """Percent at each epoch of stage 2; the end of stage 1 comes first."""
    return 100 * np.array(record["regularization"]["curve"][name])


print("test error, %    chosen (epoch)    last    best (epoch)")
for record in runs.records:
    test = curve(record, "test_error")
    at = record["result"]["chosen_epoch"]
    best = 1 + test[1:].argmin()
    print(
        f"seed {record['seed']:2} {test[at]:14.2f} ({at:3}) {test[-1]:11.2f}"
        f" {test[best]:7.2f} ({best:3})"
    )
print("mean, chosen:", chosen)
print("mean, last:  ", runs.error("last_error"))

# %% [markdown]
# The seed with the largest difference between chosen and last:


# %%
def difference(record):
    result = record["result"]
    return abs(result["chosen_error"] - result["last_error"])


record = max(runs.records, key=difference)
test, validation = (curve(record, f"{s}_error") for s in ("test", "val"))
epochs = np.arange(len(test))
shown = epochs >= len(test) // 3

fig, ax = plt.subplots(figsize=(6.5, 2.8))
ax.plot(epochs[shown], validation[shown], ".-", color="0.7")
ax.plot(epochs[shown], test[shown], ".-", color="tab:blue")
for name, at, marker in (
    ("chosen", record["result"]["chosen_epoch"], "o"),
    ("last", len(test) - 1, "s"),
    ("best", 1 + test[1:].argmin(), "*"),
):
    label = f"{name}: epoch {at}, {test[at]:.2f} %"
    ax.plot(at, test[at], marker, ms=10, mfc="none", mec="black", label=label)
ax.legend(fontsize=8)
ax.set(
    title=f"seed {record['seed']}: test error (blue), validation error (grey)",
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
print(f"ours:  {chosen}, interval {interval or 'none: one seed'}")
print(f"paper: {published} (n = 10)")
if interval:
    inside = "inside" if published.error in interval else "outside"
    print(f"the paper's mean is {inside} our interval")

# %%
errors = [100 * r["result"]["chosen_error"] for r in runs.records]
fig, ax = plt.subplots(figsize=(6.5, 1.8))
ax.plot(errors, np.zeros(len(errors)), "o", mfc="none", label="our seeds")
ax.errorbar(
    chosen.mean,
    1,
    xerr=interval and (interval.high - interval.low) / 2,
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
for record in runs.records:
    before, after = (
        100 * record["result"][f"{key}_error"] for key in ("baseline", "chosen")
    )
    print(
        f"seed {record['seed']:2}: {before:6.2f} -> {after:5.2f}, "
        f"gain {before - after:5.2f} points"
    )

# %% [markdown]
# The cells of that table in the README that are one draw:

# %%
single = [
    row.row[0]
    for row in rows_of(summary_markdown(found, RESULTS))
    if row.row[-2].partition(",")[0] == "1"
]
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
    settings = group.settings
    # The data, the labels, the epochs and so on may be any.
    if group.changes or settings["dataset"].startswith("svhn"):
        return None
    if np.mean([c["balance"][-1] for c in curves_of(group)]) < 0.5:
        return "collapsed: balance below a half"
    if settings["dataset"] == "mnist-pairs":
        return "100 classes"
    if settings["dataset"].startswith("norb"):
        return "small NORB"
    infinite = settings["unlabeled"] == "infimnist"
    return "X_U from InfiMNIST" if infinite else "MNIST"


def curves_of(group):
    return [record["regularization"]["curve"] for record in group.records]


fig, ax = plt.subplots(figsize=(7.5, 4))
for name, color in KINDS.items():
    curves = [
        curve
        for g in group(found)
        if kind_of(g) == name
        for curve in curves_of(g)
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
# - [`results/README.md`](../results/README.md) has all tables, with links from
#   each figure to its records.
# - `python scripts/table1.py` makes more records, and so do `table2.py` and
#   `table3.py`. They can be stopped at any time and go on where they were.
# - `python scripts/report.py --results runs` makes the tables of yours.
