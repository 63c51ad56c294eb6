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
# # Reading the results
#
# Each run of an experiment leaves one *record*, a JSON file in the folder
# `results`. A record holds the settings, the seed, the errors, and the curves
# of both stages. All tables of this repository are made from records, and so is
# all that you see here. `results/README.md` shows all tables, and links each
# figure to its records; `results/index.csv` has a line for each of them. This
# notebook trains nothing.
#
# It shows whatever records there are. After new runs, run it again.

# %%
from pathlib import Path
from textwrap import fill

from IPython.display import Markdown
from IPython.display import display
import matplotlib.pyplot as plt
from matplotlib.ticker import LogLocator
from matplotlib.ticker import NullFormatter
import numpy as np

from gar_keras import report
from gar_keras.experiments import records
from gar_keras.experiments.studies import STUDIES
from gar_keras.report.published import TABLES

plt.rcParams.update({"figure.dpi": 80, "figure.constrained_layout.use": True})

RESULTS = Path("../results")

# %% [markdown]
# ## The records
#
# Runs that differ in nothing but their seed belong together. They make a
# *group*. The number of its runs is $n$. Most of this notebook is about GAR as
# the paper has it. Only the data, the number of labels, the epochs, the
# precision and the coefficients of the loss may be others. All else, such as
# rivals, other rates and larger batches, has tables of its own.

# %%
found = records.read_all(RESULTS)
everything = report.group(found)
COEFFICIENTS = {"affinity", "balance", "frobenius", "frobenius_of"}


def is_plain(group):
    """Whether it is GAR as the paper has it, but for the coefficients."""
    return group.changes.keys() <= COEFFICIENTS


groups = [group for group in everything if is_plain(group)]

print(f"records: {len(found)}, groups: {len(everything)}")
print(f"groups of plain GAR: {len(groups)}")
for group in groups:
    print("-", group.describe())
if not found:
    print(
        "To make a first one: python scripts/table1.py --labels 100 --seeds 0"
    )

# %% [markdown]
# This is what a record holds. Long lists are shown by their length.


# %%
def outline(value, depth=0):
    """Prints the keys of nested dicts, and what is behind them."""
    for key, inner in value.items():
        if isinstance(inner, dict):
            print("  " * depth + f"{key}:")
            outline(inner, depth + 1)
        elif isinstance(inner, list):
            print("  " * depth + f"{key}: a list of {len(inner)}")
        else:
            print("  " * depth + f"{key}: {inner}")


SHOWN = ("cell", "seed", "experiment", "data", "labeled", "result")
if found:
    outline({key: found[0][key] for key in SHOWN})

# %% [markdown]
# ## The tables
#
# Each table has the figures of the paper first, then ours. All errors are in
# percent, on the test set.
#
# - "baseline": after pretraining, before stage 2.
# - "epoch chosen by validation": the epoch of stage 2 with the least error on
#   the validation images.
# - "last epoch": what you get without validation images.
#
# Ours are mean ± standard deviation over $n$ seeds. With $n = 1$ there is no
# standard deviation, and the figure is one draw. The paper has $n = 10$. A dash
# means that the paper gives no figure, or that we have no run.


# %%
def show(markdown):
    """Shows a table; its links lead from here to the records."""
    display(Markdown(report.with_links_from(markdown, RESULTS, ".")))


for table in TABLES.values():
    if any(report.representative(found, column) for column in table.columns):
        show(report.table_markdown(table, found, RESULTS))

# %% [markdown]
# Beyond the paper: other methods, and the studies of what it leaves open.

# %%
for comparison in report.compare(found):
    show(comparison.markdown(RESULTS))
for study in STUDIES.values():
    show(report.study_part(study).markdown(found, RESULTS))

# %% [markdown]
# ## The curves
#
# One column for each group. Epoch 0 is the end of pretraining. Thin lines are
# seeds, the thick line is their mean. The affinity and the balance are means
# over the batches of an epoch, so they begin at epoch 1.


# %%
def curves_of(group, name):
    """The epochs, and a curve for each seed (m, epochs)."""
    curves = [r["regularization"]["curve"] for r in group.records]
    epochs = curves[0]["epoch"]
    # A term whose coefficient is 0 is not measured.
    missing = [None] * len(epochs)
    values = [curve.get(name, missing) for curve in curves]
    return np.array(epochs), np.array(values, dtype=float)


def measured(group, name):
    """Whether there is anything above 0 to draw."""
    return (curves_of(group, name)[1] > 0).any()


def draw(ax, group, name, color, scale=1.0, label=None):
    ax.grid(alpha=0.3)
    if not measured(group, name):
        ax.text(0.5, 0.5, "nothing to draw", transform=ax.transAxes)
        return
    epochs, values = curves_of(group, name)
    # A lone epoch is a point, which a line does not show.
    style = {"color": color, "marker": "." if len(epochs) < 10 else None}
    ax.plot(epochs, scale * values.T, lw=0.5, alpha=0.6, **style)
    ax.plot(epochs, scale * values.mean(axis=0), label=label, **style)


def name_of(group):
    """All that tells our groups apart, and n."""
    s = group.settings
    return (
        f"{group.data}, m_L = {s['num_labeled']}, "
        f"{s['pretrain_epochs']} + {s['epochs']} epochs, {s['precision']}, "
        f"{s['backend']}{group.changes_text()}, n = {len(group.records)}"
    )


def log_scale(axis):
    """Round numbers along an axis: 1, 1.5, 2, 3, 5, 7, 10, ..."""
    if axis.axes.lines:
        axis.axes.set(**{f"{axis.axis_name}scale": "log"})
        low, high = axis.get_view_interval()
        # Fewer where they would not have room.
        subs = (1, 1.5, 2, 3, 5, 7) if high < 100 * low else (1, 3)
        axis.set_major_locator(LogLocator(subs=subs))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())


def draw_groups(groups):
    fig, axes = plt.subplots(
        3,
        len(groups),
        figsize=(3.6 * len(groups) + 0.8, 6.4),
        squeeze=False,
        sharex="col",
        height_ratios=(2, 1, 1),
    )
    for (error, affinity, balance), group in zip(axes.T, groups, strict=True):
        draw(error, group, "val_error", "tab:orange", 100, "validation")
        draw(error, group, "test_error", "tab:blue", 100, "test")
        draw(affinity, group, "affinity", "tab:blue")
        draw(balance, group, "balance", "tab:blue")
        error.set_title(fill(name_of(group), 32), fontsize=9)
        log_scale(error.yaxis)
        log_scale(affinity.yaxis)
        balance.set_xlabel("epoch of stage 2")
        balance.xaxis.get_major_locator().set_params(integer=True)
    axes[0, 0].legend()
    axes[0, 0].set_ylabel("error, %")
    axes[1, 0].set_ylabel(r"affinity $\alpha$")
    axes[2, 0].set_ylabel(r"balance $\beta$")
    plt.show()


for start in range(0, len(groups), 3):
    draw_groups(groups[start : start + 3])

# %% [markdown]
# ## What stage 2 gained, seed by seed
#
# Each seed has its own labelled images, and some draws are luckier than others.
# So we compare each seed with itself. A lower error is not always a success: a
# run can be wrong more often than right at the end, or have lost a class on the
# way, which is one that its network gives to no image any more.

# %%
for group in groups:
    before = group.error("baseline_error")
    gains = [
        100 * (r["result"]["baseline_error"] - r["result"]["chosen_error"])
        for r in group.records
    ]
    print(name_of(group))
    print(f"  error after pretraining: {before}")
    print(
        f"  gain of stage 2, in percentage points: "
        f"{np.mean(gains):.2f} on average, from {min(gains):.2f} to "
        f"{max(gains):.2f}"
    )
    print(f"  better in {sum(g > 0 for g in gains)} of {len(gains)} runs")
    wrong = sum(r["result"]["chosen_error"] > 0.5 for r in group.records)
    if wrong:
        print(f"  more often wrong than right all the same: {wrong}")
    print(f"  lost a class: {report.lost_text(group.records, RESULTS)}")

# %% [markdown]
# ## How fast
#
# The number of epochs of stage 2 after which the mean test error had made half
# of its way from the first value to the last.

# %%
for group in groups:
    epochs, errors = curves_of(group, "test_error")
    mean = errors.mean(axis=0)
    half = (mean[0] + mean[-1]) / 2
    name = name_of(group)
    if mean[-1] < mean[0]:
        first = epochs[np.argmax(mean <= half)]
        print(f"{name}: epoch {first} of {epochs[-1]}")
    else:
        print(f"{name}: the last error is not below the first")

# %% [markdown]
# ## Where the curves go
#
# The authors' code ran 200 epochs of stage 2. Ours are fewer where time was
# short. On a doubly logarithmic scale the curves are nearly straight from
# epoch 10 on, which invites drawing them on. But look at what comes of it:
#
# - *At epoch 200*: the line through all epochs from 10 on, and the line through
#   the second half alone.
# - *Back-test*: the line through the epochs from 10 to two thirds, against what
#   the last five epochs were.
#
# Where the line of the back-test is too low, the curve has flattened since, and
# so will the lines to epoch 200 be too low. None of them is a result.


# %%
def line(epochs, errors, at):
    """The mean of the log-log line through some epochs, at others."""
    slope, start = np.polyfit(np.log(epochs), np.log(errors), 1)
    return np.exp(start + slope * np.log(at)).mean()


too_low = []
for group in groups:
    epochs, errors = curves_of(group, "test_error")
    if epochs[-1] < 30:
        continue
    last = epochs[-1]
    mean = 100 * errors.mean(axis=0)
    late = slice(10, None)
    half = slice(last // 2, None)
    early = slice(10, 2 * last // 3 + 1)
    end = slice(-5, None)
    print(name_of(group))
    print(
        f"  at epoch 200: {line(epochs[late], mean[late], 200):.2f} % from "
        f"epoch 10, {line(epochs[half], mean[half], 200):.2f} % from epoch "
        f"{last // 2}"
    )
    expected = line(epochs[early], mean[early], epochs[end])
    too_low.append(expected < mean[end].mean())
    print(f"  back-test: {expected:.2f} %, but it was {mean[end].mean():.2f} %")
print(f"back-tests that were too low: {sum(too_low)} of {len(too_low)}")

# %% [markdown]
# ## What the choice of the epoch costs
#
# The validation images choose the epoch that counts. They are few, so the
# choice is not perfect. Below is the test error at three epochs: the chosen
# one, the last one, and the best one. The best one is known only to those who
# look at the test labels. It is no result. It shows what a perfect choice could
# have gained.

# %%
for group in groups:
    _, errors = curves_of(group, "test_error")
    best = report.Estimate.of(errors[:, 1:].min(axis=1))
    print(name_of(group))
    print(f"  chosen by validation: {group.error('chosen_error')}")
    print(f"  last epoch:           {group.error('last_error')}")
    print(f"  best on the test set: {best}")

# %% [markdown]
# ## Does the loss know the error?
#
# In real life there are no test labels. Can the affinity tell when the network
# is good? Each dot is an epoch of a run. Within a run both tend to fall
# together, since both change with time. That does not make the one a measure of
# the other: a network that has collapsed has a low affinity too (see
# `03_your_own_data`).

# %%
shown = [group for group in groups if measured(group, "affinity")]
if shown:
    fig, ax = plt.subplots(figsize=(9.5, 1 + 0.36 * max(7, len(shown))))
    for number, group in enumerate(shown):
        _, affinities = curves_of(group, "affinity")
        _, errors = curves_of(group, "test_error")
        ax.plot(
            affinities[:, 1:].ravel(),
            100 * errors[:, 1:].ravel(),
            # There are ten colours.
            ".x+1"[number // 10 % 4],
            color=f"C{number % 10}",
            alpha=0.6,
            label=fill(name_of(group), 40),
        )
    ax.set(
        xlabel=r"affinity $\alpha$ of the epoch",
        ylabel="test error, %",
    )
    log_scale(ax.xaxis)
    log_scale(ax.yaxis)
    ax.grid(alpha=0.3)
    fig.legend(fontsize=8, loc="outside right upper")
    plt.show()

# %% [markdown]
# ## Where to go from here
#
# - `python scripts/table1.py` makes more records, and so do `table2.py` and
#   `table3.py`. They can be stopped and go on where they were.
# - `python scripts/report.py` writes the tables as Markdown and PNG.
# - The README lists where these experiments differ from the paper's.
