"""Experiments that differ in one setting, seed by seed."""

import statistics

from gar_keras.methods import METHODS
from gar_keras.report import layout
from gar_keras.report.groups import but_for, group
from gar_keras.report.lost import lost_text
from gar_keras.report.sources import linked


def paired(records, results=None, *, setting):
    """Comparison of experiments that differ in one setting, seed by seed.

    Args:
        records: Run records.
        results: Folder of the records, with what lies beside them, if at hand.
        setting: Name of the setting, e.g. `"precision"`.

    Returns:
        Markdown: a table with a row for each pair of experiments and its mean
        difference over the seeds that both ran, in percentage points, at the
        last epoch that both have; empty if there is no pair. Of runs of
        several lengths, those from the same end of stage 1 are paired.
    """
    # Other methods have settings of their own.
    groups = [g for g in group(records) if METHODS[g.method].set_by_experiment]
    alike = {}
    for i, first in enumerate(groups):
        for second in groups[i + 1 :]:
            if _differ_in(first, second) - {"epochs"} == {setting}:
                pair = sorted(
                    (first, second), key=lambda g: str(g.settings[setting])
                )
                alike.setdefault(
                    but_for(first, {setting, "epochs"}), []
                ).append(pair)
    rows = []
    for pairs in alike.values():
        rows += _paired_row(*max(pairs, key=_size_of_pair), setting, results)
    if not rows:
        return ""
    heading = [
        "runs",
        "seeds",
        "test error, last epoch of both",
        "runs that lost a class",
        "mean difference",
    ]
    rules = ["---", "---", "---", "---", "---:"]
    return "\n".join([*layout.markdown_table(heading, rows, rules), ""])


def _differ_in(first, second):
    """Names of the settings in which two experiments differ."""
    a, b = first.settings, second.settings
    return {name for name in a.keys() | b.keys() if a.get(name) != b.get(name)}


def _size_of_pair(pair):
    """Sort key: epochs, seeds from the same end of stage 1, all seeds."""
    first, second = pair
    starts, others = (g.by_seed("baseline_error") for g in pair)
    common = starts.keys() & others.keys()
    alike = sum(starts[seed] == others[seed] for seed in common)
    return bool(common), _common_epoch(first, second), alike, len(common)


def _common_epoch(first, second):
    """The last epoch that both have.

    A run of more epochs was there what a shorter one is at its end, unless
    its rate is laid over all epochs: then there is no such epoch.
    """
    epochs = {g.settings["epochs"] for g in (first, second)}
    rate = first.settings["extensions"]["rate"]
    if rate == "cosine" and len(epochs) > 1:
        return 0
    return min(epochs)


def _paired_row(first, second, setting, results):
    epoch = _common_epoch(first, second)
    errors = [
        {
            r["seed"]: 100 * r["regularization"]["curve"]["test_error"][epoch]
            for r in g.records
        }
        for g in (first, second)
    ]
    seeds = sorted(errors[0].keys() & errors[1].keys())
    if not seeds or not epoch:
        return []
    s = first.settings
    names = [
        layout.in_markdown(linked(str(g.settings[setting]), g, results))
        for g in (first, second)
    ]
    pairs = ", ".join(f"{errors[0][i]:.2f} / {errors[1][i]:.2f}" for i in seeds)
    lost = [
        lost_text([r for r in g.records if r["seed"] in seeds], results)
        for g in (first, second)
    ]
    mean = statistics.mean(errors[0][i] - errors[1][i] for i in seeds)
    return [
        [
            f"{first.data}, m_L = {s['num_labeled']}, "
            f"{s['pretrain_epochs']} + {epoch} epochs",
            f"{', '.join(map(str, seeds))} (n = {len(seeds)})",
            f"{' / '.join(names)}: {pairs}",
            " / ".join(lost),
            f"{mean:+.2f}",
        ]
    ]
