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
# It trains nothing and takes a few seconds. It shows the records of `results`.
# Your own runs are in `runs`: set `RESULTS = Path("../runs")` to see those.

# %%
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import Image, Markdown, display

from gar_keras import expected_balance

# What reads the records is beside the scripts of a clone.
sys.path.append("../scripts")

from reproduction import records, report
from reproduction.report import pictures
from reproduction.report.cells import all_cells, cell_runs
from reproduction.report.lost_starts import interval, lost_line
from reproduction.report.published import GAR, TABLES
from reproduction.report.run_frame import (
    epochs,
    errors_of,
    largest,
    of_known,
    task,
)
from reproduction.report.write_pages import with_links_from

plt.rcParams.update({"figure.dpi": 90, "figure.constrained_layout.use": True})

# %% [markdown]
# The figure: the error with GAR in a cell of the paper's tables, `mnist-100`
# for MNIST with 100 labels.

# %% tags=["parameters"]
RESULTS = Path("../results")
CELL = "mnist-100"

# %% [markdown]
# ## 1. The cell in the README, and its largest set of runs
#
# `read_runs` reads all records into a DataFrame, a row for each run. Of a cell
# the README shows the runs with the paper's settings and its number of epochs,
# a line for each device. Of all experiments with these settings we follow the
# one with the most runs, among those of 20 epochs of stage 2 or more, and of
# equally many runs the longest.

# %%
frame = report.read_runs(RESULTS)
print(f"records: {len(frame)}")

table, place = next(
    (table, place)
    for table in TABLES.values()
    for place, column in enumerate(table.columns)
    if column.cell == CELL
)
column = table.columns[place]
paper_like = frame[frame.differs == ""]
runs = largest(paper_like[paper_like.cell.isin([CELL, column.stand_in])])
if runs.empty:
    raise SystemExit(
        f"No record of {CELL}. A first one of mnist-100: python "
        "scripts/table1.py --labels 100 --seeds 0. Then RESULTS = "
        "Path('../runs')."
    )
chosen = report.Estimate.of(runs.chosen)

head, rule, *lines = all_cells(frame).splitlines()
shown = [head, rule, *(line for line in lines if f"[{task(runs)}]" in line)]
# Links lead from here to the records.
display(Markdown(with_links_from("\n".join(shown), RESULTS, ".")))
print(f"Our figure: {chosen}, test error in percent, {epochs(runs)} epochs")

# %% [markdown]
# *Difference* is our mean less the paper's, with its 90 % interval. It is
# *within the margin* only if the whole interval is; [All
# cells](../docs/reproduction.md#all-cells) says how the margin was set. There
# are two answers, since the paper does not say whether its ± is a standard
# deviation or a standard error.
#
# *Try*: `CELL = "norb-1000"`, and run all cells. What is different?
#
# ## 2. Its records
#
# The folders say what a run is: the cell, then the epochs of both stages, the
# precision and a fingerprint of the settings. These are the runs of our figure:

# %%
columns = ["seed", "stage_1", "chosen", "last", "lost", "minutes"]
print(runs[columns].to_string(index=False, float_format="%.2f"))

# %% [markdown]
# *Try*: sort `frame[frame.cell == CELL]` by `chosen`. Which run has the lowest
# error, and what does its `differs` say?
#
# ## 3. A record and its settings
#
# This is what the first of them holds, and the settings of the experiment that
# are not 0 or `None`. With them and the seed the run can be made again.

# %%
record = records.read(RESULTS / runs.path.iloc[0])
print(*record, sep=", ")


def settings_of(experiment):
    """Names and values, but for what is 0 or none."""
    for name, value in experiment.items():
        if isinstance(value, dict):
            yield from settings_of(value)
        elif name == "method":
            for term in value:
                yield from settings_of(term)
        elif value:
            yield name, value


for name, value in settings_of(record["experiment"]):
    print(f"{name:20} {value}")

# %% [markdown]
# And what differs from the paper's settings. Epochs, precision and backend do
# not count as such; the authors' code has 2,000 + 200 epochs.

# %%
print("different:", runs.differs.iloc[0] or "nothing")
print("epochs:", epochs(runs), "in", runs.precision.iloc[0])

# %% [markdown]
# *Try*: print the label indices, `record["labeled"]`, of two seeds. Are any the
# same?
#
# ## 4. Its curve
#
# The test error, as `python scripts/report.py` draws it for the tables. Epoch 0
# is the end of stage 1.

# %%
with tempfile.TemporaryDirectory() as temporary:
    (picture,) = pictures.draw(runs, temporary, [table.name])
    display(Image(picture.read_bytes(), width=640))

# %% [markdown]
# *Try*: `for run in runs.itertuples(): plt.plot(run.curve["affinity"])`. Does
# the affinity show which run is the worst?
#
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
# no longer that of unseen images. By construction it is never higher than the
# other two, and gets lower the more epochs there are to choose from.


# %%
def curve(run, name):
    """Percent at each epoch of stage 2; the end of stage 1 comes first."""
    return 100 * np.array(run.curve[name])


print("test error, %    chosen (epoch)    last    best (epoch)")
for run in runs.itertuples():
    test = curve(run, "test_error")
    best = 1 + test[1:].argmin()
    print(
        f"seed {run.seed:2} {run.chosen:14.2f} ({run.chosen_epoch:3})"
        f" {run.last:11.2f} {test[best]:7.2f} ({best:3})"
    )

# %% [markdown]
# The seed with the largest difference between chosen and last, its test error
# in blue and its validation error in grey:

# %%
run = runs.iloc[(runs.chosen - runs["last"]).abs().to_numpy().argmax()]
test, validation = curve(run, "test_error"), curve(run, "val_error")
at = np.arange(len(test))
late = at >= len(test) // 3

fig, ax = plt.subplots(figsize=(6.5, 2.8))
ax.plot(at[late], validation[late], ".-", color="0.7")
ax.plot(at[late], test[late], ".-", color="tab:blue")
ax.plot(run.chosen_epoch, run.chosen, "o", ms=10, mfc="none", label="chosen")
ax.plot(at[-1], test[-1], "s", ms=10, mfc="none", label="last")
ax.set(title=f"seed {run.seed}", xlabel="epoch of stage 2", ylabel="error, %")
ax.legend(fontsize=8)
ax.grid(alpha=0.3)
plt.show()
ties = np.sum(validation[1:] == validation[1:].min())
print(f"epochs with the least validation error: {ties}")

# %% [markdown]
# The validation error moves in steps, since its images are few. So the choice
# is not perfect, and that is part of the method.
#
# *Try*: choose the *first* of the epochs with the least validation error; our
# runs take the last. How far does the mean move?
#
# ## 6. The odd ones out
#
# Two runs stand far from the others. A record says more than its error. First,
# what the worst run itself said while it trained, without any test label:

# %%
odd = runs.iloc[runs.chosen.to_numpy().argmax()]
print(f"seed {odd.seed}: {odd.stage_1:.2f} % -> {odd.chosen:.2f} %")
for message in odd.warnings or ["no warning"]:
    print(message.partition(". ")[0])

# %% [markdown]
# Beside the record lie the classes that the network gave to 2,000 of the test
# images, at some epochs. Their confusion matrices, at the end of stage 1 and of
# stage 2:

# %%
path = RESULTS / odd.path
arrays = records.read_arrays(path, records.read(path))
predicted = arrays.predicted
stages = {"after stage 1": min(predicted), "at the end": max(predicted)}
n = max(arrays.labels) + 1

fig, axes = plt.subplots(1, 2, figsize=(7, 3.4))
for ax, (title, epoch) in zip(axes, stages.items(), strict=True):
    matrix = np.zeros((n, n), int)
    np.add.at(matrix, (arrays.labels, predicted[epoch]), 1)
    ax.imshow(matrix, cmap="Blues", vmax=60)
    for i, j in zip(*np.nonzero(matrix), strict=True):
        color = "white" if matrix[i, j] > 40 else "black"
        ax.text(
            j, i, matrix[i, j], ha="center", va="center", fontsize=6, c=color
        )
    ax.set(title=title, xlabel="predicted", ylabel="right")
    ax.set(xticks=range(n), yticks=range(n))
plt.show()

# %% [markdown]
# A whole column is empty: no image is given to that class any more, and most of
# its images go to one other. The balance shows it too: without one class of
# ten it is about 0.83 at best, 8/9 of `expected_balance(128, 9)` (red; dashed:
# right labels):

# %%
m = odd.labeled_per_batch + odd.unlabeled_per_batch
print(f"balance of right predictions:   {expected_balance(m, n):.3f}")
fig, ax = plt.subplots(figsize=(6.5, 2.4))
colors = np.where(runs.lost.eq(True), "tab:red", "0.7")
for values, color in zip(runs.curve, colors, strict=True):
    ax.plot(values["balance"], color=color, lw=1)
ax.axhline(expected_balance(m, n), color="black", ls="--", lw=1)
ax.set(xlabel="epoch of stage 2", ylabel="balance", ylim=(0.7, 1.0))
plt.show()
print(f"balance at the end, seed {odd.seed}:    {odd.balance_end:.3f}")

# %% [markdown]
# So this is not bad luck of the kind that makes one run a little worse than
# another. It is another outcome: a class is lost, which the default of
# `regularize` guards against (`docs/decides.md`).
#
# *Try*: the same matrix after epoch 1, `predicted[1]`. When did it happen?
#
# ## 7. How to sum up ten runs
#
# The mean and its deviation describe errors that scatter around one value.
# These are eight of one kind and two of another. A mean is then pulled to where
# no run is, and an interval by Student's $t$ reaches below every single one of
# them:

# %%
low, high = chosen.interval() or (np.nan, np.nan)
print(
    f"mean, with its 95 % interval: {chosen.mean:.2f} ({low:.2f} to {high:.2f})"
)
print(f"least error of a run:         {runs.chosen.min():.2f}")

fig, ax = plt.subplots(figsize=(6.5, 1.6))
height = 0.3 * (np.arange(len(runs)) % 3)
colors = np.where(runs.lost.eq(True), "tab:red", "tab:blue")
ax.scatter(runs.chosen, height, c=colors)
ax.axvline(chosen.mean, color="black", ls="--", lw=1)
ax.axvspan(low, high, color="0.9", zorder=0)
ax.set(xlabel="test error of a run, % (red: lost a class)")
ax.set(yticks=[], ylim=(-0.3, 0.9))
plt.show()

# %% [markdown]
# Say the two things one by one: what a typical run ends with, and how often a
# run loses a class. Two in ten leave that rate wide open: the 95 % interval of
# Clopper and Pearson says how wide. All starts in the records, also those that
# were trained for few epochs, tell more.

# %%
lost = runs.lost.eq(True)
kept = runs.chosen[~lost]
print(f"median of all runs:       {runs.chosen.median():.2f}")
print(f"runs that lost a class:   {of_known(lost)}, {interval(lost)}")
print(f"the others, mean:         {report.Estimate.of(kept)}")
print(f"the paper:                {table.rows[GAR][place]}")
print(lost_line(frame))

# %% [markdown]
# *Try*: `interval` of 0 of $n$ runs lost. Which $n$ brings its upper end below
# 5 %?
#
# ## 8. What $n = 1$ means
#
# One draw. Had we run only one of our seeds, a table would show one of these:

# %%
print(", ".join(f"{error:.2f}" for error in sorted(runs.chosen)))

# %% [markdown]
# So a difference between two figures with $n = 1$ means nothing unless it is
# much larger than what seeds differ by. With the same seeds, and so the same
# labelled images, compare seed by seed: what the draw of the labels does to
# both is then left out. GAR against its own stage 1:

# %%
gain = runs.stage_1 - runs.chosen
print(f"gain in points: least {gain.min():.2f}, median {gain.median():.2f}")
single = [name for name, g in cell_runs(frame).items() if len(g) == 1]
print("Cells of the README that are one draw:", "; ".join(single) or "none")

# %% [markdown]
# *Try*: the gain of each seed against its error after stage 1. Who gains most?
#
# ## 9. What more epochs bring
#
# The authors' code has 200 epochs of stage 2. Of the runs of this cell that
# went so far and kept all classes, the mean error over 20 epochs, by device:

# %%
long = paper_like[paper_like.cell == runs.cell.iloc[0]]
long = long[(long.epochs == 200) & ~long.lost.eq(True)]
for device, g in long.groupby("device"):
    means = errors_of(g).mean(axis=0)
    around = (
        f"{last}: {means[last - 19 : last + 1].mean():.2f}"
        for last in (50, 100, 200)
    )
    print(f"{device}, n = {len(g)}, 20 epochs up to", ", ".join(around))

# %% [markdown]
# The error goes on falling, by less and less. Compare runs of one length only.
#
# *Try*: the same for each seed. Which one gains most between 100 and 200?
#
# ## Where to go from here
#
# - [`results/README.md`](../results/README.md) has a row for each experiment;
#   [Reproduction](../docs/reproduction.md) has the tables, and [What decides a
#   run](../docs/decides.md) says why runs differ.
# - `python scripts/table1.py` makes more records, and so do `table2.py` and
#   `table3.py`. They can be stopped at any time and go on where they were.
# - `python scripts/report.py --results runs` makes the tables of yours.
