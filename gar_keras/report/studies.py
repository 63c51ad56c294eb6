"""The studies beyond the paper, an arm a row."""

from gar_keras.experiments.settings import Experiment
from gar_keras.report import layout
from gar_keras.report.estimates import Estimate
from gar_keras.report.groups import HARDWARE, group, size
from gar_keras.report.layout import MISSING
from gar_keras.report.lost import (
    LOST_NOTE,
    lost_text,
    without_lost,
)
from gar_keras.report.sources import linked

STUDY_HEADING = (
    "",
    "after stage 1",
    "epoch chosen by validation",
    "difference from the first row",
    "last epoch",
    "validation, after stage 1",
    "validation, last epoch",
    "affinity",
    "balance",
    "runs that lost a class",
    "runs with a warning",
    "min per run",
)

LOST = STUDY_HEADING.index("runs that lost a class")

WARNING_NOTE = (
    "Warnings are those of the version of gar_keras that made a run. Only runs "
    "that counted the classes in use could name lost ones: {number} of these "
    "{all} did not."
)

# What of it fits into a terminal.
STUDY_SHORT = (
    "",
    "after stage 1",
    "epoch chosen by validation",
    "difference from the first row",
    "last epoch",
    "runs with a warning",
)


def study_table(title, study, records, results):
    """A study for the terminal."""
    columns = [STUDY_HEADING.index(name) for name in STUDY_SHORT]
    rows = study_rows(study, records, results)
    short = [[row[k] for k in columns] for row in rows]
    return layout.terminal_table(title, STUDY_SHORT, short, min_width=22)


def study_markdown(study, records, results):
    """A study as Markdown; empty if none of it has been run.

    Args:
        study: A `Study`.
        records: Run records.
        results: Folder of the records, with what lies beside them.
    """
    if not any(arm_group(arm, records) for arm in study.arms.values()):
        return ""
    lines = [f"**{study.title}**", ""]
    lines += layout.numbers(STUDY_HEADING, study_rows(study, records, results))
    notes = study_notes(study, records, results)
    lines += ["", *(f"- {note}" for note in notes)]
    return "\n".join(lines) + "\n"


def study_rows(study, records, results):
    """The rows of a study: its arms, with what was measured of each."""
    records, _ = made_alike(study, records)
    rows = []
    usual = arm_group(next(iter(study.arms.values())), records)
    first = usual.by_seed("chosen_error") if usual else {}
    for name, arm in study.arms.items():
        g = arm_group(arm, records)
        if g is None:
            nothing = (MISSING for _ in STUDY_HEADING[2:])
            rows.append([name, "not run", *nothing])
            continue
        chosen = g.by_seed("chosen_error")
        minutes = g.seconds("pretraining", "regularization") / 60
        rows.append(
            [
                linked(name, g, results),
                str(g.error("baseline_error")),
                str(g.error("chosen_error")),
                _against(first, chosen) if _comparable(g, usual) else MISSING,
                str(g.error("last_error")),
                *(str(g.validation_error(epoch)) for epoch in (0, -1)),
                *(g.last(term) for term in ("affinity", "balance")),
                lost_text(g.records, results),
                g.warned(),
                f"{minutes:.1f}",
            ]
        )
    return rows


def study_notes(study, records, results=None):
    """Notes below a study: seeds, epochs and devices of its rows.

    Args:
        study: A `Study`.
        records: Run records.
        results: Folder of the records, with what lies beside them, if at hand.
    """
    records, others = made_alike(study, records)
    found = {name: arm_group(arm, records) for name, arm in study.arms.items()}
    groups = {name: g for name, g in found.items() if g is not None}
    notes = [*study.notes, *group_notes(groups), *others]
    notes += [*_warning_notes(groups), *without_notes(groups, results)]
    return [*notes, LOST_NOTE]


def _warning_notes(groups):
    """A note on the runs with GAR that could not warn of a lost class."""
    curves = [
        r["regularization"]["curve"]
        for g in groups.values()
        for r in g.records
        if r["regularization"]["curve"].get("balance")
    ]
    before = sum(not curve.get("classes_in_use") for curve in curves)
    if not before:
        return []
    return [WARNING_NOTE.format(number=before, all=len(curves))]


def group_notes(groups):
    """Notes on groups by name: seeds, epochs, devices and settings."""
    alike = {}
    for name, g in groups.items():
        s = g.settings
        where = (
            f"{g.seed_text()}, {s['pretrain_epochs']} + {s['epochs']} epochs, "
            f"{s['precision']}, {s['backend']}, {g.device_text()}"
        )
        alike.setdefault(where, []).append(name)
    lines = []
    for where, names in alike.items():
        who = "all rows" if len(alike) == 1 else "; ".join(names)
        lines.append(f"{where}: {who}")
    changes = {name: g.changes_text() for name, g in groups.items()}
    lines += [
        f"{name}: {text.removeprefix(', ')}"
        for name, text in changes.items()
        if text
    ]
    return lines


def without_notes(groups, results=None):
    """A note on groups by name: errors without the runs that lost a class.

    Args:
        groups: Groups by name.
        results: Folder of the records, with what lies beside them, if at hand.

    Returns:
        A list of one note, or of none.
    """
    sound = {name: without_lost(g, results) for name, g in groups.items()}
    texts = [
        f"{name} {g.error('chosen_error')}" for name, g in sound.items() if g
    ]
    if not texts:
        return []
    return [
        "epoch chosen by validation, without the runs that lost a class: "
        + "; ".join(texts)
    ]


def made_alike(study, records):
    """The records with the precision and backend that a study is shown in.

    Of several, the pair in which the most of its arms were run, and of these
    the one whose runs have the most epochs of stage 2 together.

    Args:
        study: A `Study`.
        records: Run records.

    Returns:
        `(records, notes)`: those with that precision and backend, and a list
        of a note on the runs of the study with others, if there are any.
    """
    experiments, by_hardware = study.experiments, {}
    for g in group(records):
        run = [arm for arm in experiments if _is_of(arm, g)]
        if run:
            by_hardware.setdefault(_hardware(g.settings), []).append((run, g))
    if not by_hardware:
        return records, []

    def key(hardware):
        found = by_hardware[hardware]
        run = {arm for arms_of_group, _ in found for arm in arms_of_group}
        epochs = sum(size(g)[0] for _, g in found)
        return len(run), epochs, hardware

    shown = max(by_hardware, key=key)
    notes = [
        "not in the table, with another precision or backend: "
        f"{', '.join(hardware)}, "
        f"runs: {sum(len(g.records) for _, g in by_hardware[hardware])}"
        for hardware in sorted(by_hardware)
        if hardware != shown
    ]
    return [r for r in records if _hardware(r["experiment"]) == shown], notes


def _hardware(settings):
    return tuple(settings[name] for name in HARDWARE)


def arm_group(arm, records):
    """The group of records of an arm of a study, or `None`.

    Precision and backend may be any; of several groups it is the largest.
    """
    groups = [g for g in group(records) if _is_of(arm, g)]
    return max(groups, key=size, default=None)


def _is_of(arm, g):
    experiment = Experiment(**g.settings)
    return all(
        value == getattr(experiment, name)
        for name, value in vars(arm).items()
        if name not in HARDWARE
    )


def _comparable(g, usual):
    """Whether the errors of two groups are those of one and the same task."""
    return usual not in (None, g) and _task(g) == _task(usual)


def _task(g):
    settings = g.settings
    return settings["dataset"], settings["world"]["known_classes"]


def _against(first, errors):
    """The mean difference of errors by seed, of the seeds that both have.

    Example:

    >>> _against({0: 0.05, 1: 0.06}, {1: 0.04, 2: 0.03})
    '-2.00 (n = 1)'
    """
    found = Estimate.of_differences(first, errors)
    return MISSING if found is None else str(found)
