"""The headline, all cells of the paper, and the methods beside each other."""

import math
from dataclasses import replace

from gar_keras.experiments.settings import (
    FREE,
    GRAPH_RIVALS,
    PAPER,
    Extensions,
)
from gar_keras.experiments.studies import FASTER, SMALL_BATCHES
from gar_keras.methods import METHODS
from gar_keras.report import runs
from gar_keras.report.estimates import MISSING
from gar_keras.report.published import (
    BASELINE,
    GAR,
    RUNS,
    TABLES,
    published_error,
)
from gar_keras.report.studies import claim_runs
from gar_keras.report.tables import (
    figure,
    linked,
    made_on,
    markdown,
    representative,
    shown,
    table,
)

# The cell of the headline.
_HEADLINE = "mnist-100"


def headline(frame):
    """MNIST with 100 labels: ours, the paper's, and with small batches."""
    g = cell_runs(frame).get("MNIST, 100 labels", frame[:0])
    if not len(g):
        return ""
    before, after = (
        published_error(_HEADLINE, row).error for row in (BASELINE, GAR)
    )
    text = (
        "MNIST with 100 labels, 6-layer CNN (`cnn6`), no augmentation: test "
        f"error {g.stage_1.mean():.1f} → **{g.chosen.mean():.1f} %** "
        f"({_told(g)}). The paper: {before:.1f} → {after:.1f} % ({RUNS} seeds)."
    )
    small = claim_runs(FASTER, SMALL_BATCHES, frame)
    if len(small):
        b_L, b_U = (
            small[f"{kind}_per_batch"].iloc[0]
            for kind in ("labeled", "unlabeled")
        )
        same = g[g.seed.isin(small.seed)]
        text += (
            " With the default optimizer of `regularize` and "
            f"`labeled_per_batch={b_L}`, `unlabeled_per_batch={b_U}`: "
            f"{small.chosen.mean():.1f} % ({_told(small)}; the runs above on "
            f"these seeds: {same.chosen.mean():.1f} %{_sound(same)})."
        )
    return f"{text}\n"


def _told(g):
    """How many runs, of what length."""
    seeds = linked(f"seeds {runs.seeds(g)}", g)
    text = f"{seeds}, {g.epochs.iloc[0]} epochs of GAR"
    if g.steps.notna().all():
        text += f", {g.steps.iloc[0]:,.0f} steps"
    return text + _sound(g)


def _sound(g):
    """The error of the runs that lost no class, if some lost one."""
    sound = runs.without_lost(g)
    if not len(sound):
        return ""
    error = f"{sound.chosen.mean():.1f} %"
    return f"; {error} in the {len(sound)} that lost no class"


def summary(frame):
    """Each cell of the paper's tables: the paper's error with GAR and ours."""

    columns = {
        "the paper": lambda g: str(published_error(g.cell.iloc[0])),
        "ours": figure("chosen"),
        "difference shown?": shown,
        f"last {runs.LATE} epochs": _mean("last_20"),
        "lost a class": runs.lost,
        "seeds": runs.seeds,
        "epochs": runs.epochs,
    }
    rows = cell_runs(frame)
    cells = table(rows, columns)
    return markdown(cells) if len(cells) else ""


def _mean(name):
    return lambda g: figure(name)(g).partition(" ")[0]


def cell_runs(frame):
    """Our runs in the cells that have a figure of GAR in the paper."""
    found = {}
    for paper in TABLES.values():
        for column in paper.columns if GAR in paper.rows else ():
            g = representative(frame, column)
            found[task(g) if len(g) else column.cell] = g
    return found


def task(g):
    """The data and the number of labels."""
    return f"{g.title.iloc[0]}, {g.num_labeled.iloc[0]} labels"


# Methods.


def compare(frame):
    """GAR and other methods where all other settings are the same.

    A method without a network has the same labels and images; settings of the
    training do not concern it. A list of dicts of runs by method, the largest
    first.
    """
    trained, graph = {}, {}
    for g in runs.groups(frame):
        e = g.experiment.iloc[0]
        if e.method in GRAPH_RIVALS:
            graph.setdefault(_data(e), {})[e.method] = g
        elif e.class_prior is None and e.extensions == Extensions():
            trained.setdefault(replace(e, method="gar"), {})[e.method] = g
    found = [
        methods | graph.get(_data(e), {})
        for e, methods in trained.items()
        if {*methods} != {"gar"}
    ]
    return sorted(found or graph.values(), key=len, reverse=True)


def _data(e):
    return e.dataset, e.num_labeled, e.unlabeled, e.num_validation, e.world


def _epochs(g):
    trains = METHODS[g.method.iloc[0]].network
    return runs.epochs(g) if trains else MISSING


def _seconds(g):
    stages = (g.pretrain_seconds, g.seconds)
    return " + ".join(f"{s.mean():.0f}" for s in stages if s.notna().all())


METHOD_COLUMNS = {
    "test error, chosen epoch": figure("chosen"),
    "last epoch": figure("last"),
    "seeds": runs.seeds,
    "epochs": _epochs,
    "seconds, stages 1 + 2": _seconds,
}


def comparison(methods):
    """What methods are compared on, and their runs by row, the best first."""
    first = next(iter(methods.values()))
    rate = first.experiment.iloc[0].stage_2_rate
    rate = f", learning rate of stage 2 {rate:g}" if rate else ""
    rows = {METHODS[name].title: g for name, g in methods.items()}
    if first.stage_1.notna().all():
        start = {name: first.stage_1 for name in ("chosen", "last")}
        rows[BASELINE] = first.assign(**start, seconds=None)
    order = sorted(rows.items(), key=lambda row: row[1].chosen.mean())
    title = f"GAR and other methods on {task(first)}{rate}: test error, percent"
    return title, dict(order)


def rivals(found):
    """What `compare` gives, in Markdown."""
    texts = []
    for title, rows in map(comparison, found):
        text = markdown(table(rows, METHOD_COLUMNS), made_on(rows))
        texts.append(f"**{title}**\n\n{text}")
    return "\n".join(texts)


def methods(frame):
    """GAR and what is ahead of it on MNIST, 100 labels; the rest in words."""
    usual = runs.like(frame, PAPER[_HEADLINE], [*FREE, "method"])
    for found in compare(usual)[:1]:
        title, rows = comparison(found)
        errors = {
            name: (g.chosen.mean(), g["last"].mean())
            for name, g in rows.items()
        }
        start = errors.get(BASELINE, (math.inf, math.inf))[0]
        ours = errors.get("GAR", (math.inf, math.inf))[0]
        told = {
            "higher than GAR": [
                name
                for name, (chosen, last) in errors.items()
                if chosen > ours and max(chosen, last) < start - 0.1
            ],
            "no gain over pretraining": [
                name
                for name, error in errors.items()
                if name != BASELINE and abs(max(error) - start) <= 0.1
            ],
            "above pretraining at the last epoch": [
                name for name, (_, last) in errors.items() if last > start + 0.1
            ],
        }
        shown = {
            name: g
            for name, g in rows.items()
            if errors[name][0] <= ours or name == BASELINE
        }
        columns = {
            name: column
            for name, column in METHOD_COLUMNS.items()
            if name != "last epoch"
        }
        notes = [f"{what}: {', '.join(n)}" for what, n in told.items() if n]
        text = markdown(table(shown, columns), ["; ".join(notes)])
        return f"**{title}**\n\n{text}"
    return ""
