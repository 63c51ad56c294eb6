"""All cells of the paper, and the methods compared."""

from reproduction.methods import METHODS
from reproduction.report import run_frame
from reproduction.report.estimates import MISSING
from reproduction.report.published import (
    BASELINE,
    GAR,
    TABLES,
    published_error,
)
from reproduction.report.tables import (
    figure,
    made_on,
    markdown,
    representative,
    shown,
    table,
)

SUMMARY_COLUMNS = {
    "the paper": lambda g: published_error(g.cell.iloc[0]).text(),
    "ours": figure("chosen"),
    "difference shown?": shown,
    f"last {run_frame.LATE} epochs, shown?": lambda g: ", ".join(
        (figure("last_20")(g).split()[0], shown(g, "last_20"))
    ),
    "lost a class": run_frame.of_known("lost"),
    "seeds": run_frame.seeds,
    "epochs": run_frame.epochs,
}


def summary(frame, names=(*SUMMARY_COLUMNS,)):
    """Each cell of the paper's tables: the paper's error with GAR and ours."""
    columns = {name: SUMMARY_COLUMNS[name] for name in names}
    return markdown(table(cell_runs(frame), columns))


def cell_runs(frame):
    """Our runs in the cells that have a figure of GAR in the paper."""
    found = (
        representative(frame, column)
        for paper in TABLES.values()
        for column in paper.columns
        if GAR in paper.rows
    )
    return {run_frame.task(g): g for g in found if len(g)}


# Methods.


def compare(frame):
    """Dicts of runs that differ in the method, largest first.

    Of even classes, and of images as they are. A method without a network has
    no settings of training to be compared by: it is in the first dict.
    """
    trained, graph = {}, {}
    for g in run_frame.by_folder(frame).values():
        e = g.experiment.iloc[0]
        name = e.method_name
        plain = e.data_settings.shares is None and not (e.shift or e.affine)
        if not e.trains_network:
            graph.setdefault(_data(e), {})[name] = g
        elif name in METHODS and e == e.with_method(name) and plain:
            trained.setdefault(e.with_method("gar"), {})[name] = g
    found = [
        trained[e] | graph.pop(_data(e), {})
        for e in sorted(trained, key=lambda e: len(trained[e]), reverse=True)
        if {*trained[e]} != {"gar"}
    ]
    return found or sorted(graph.values(), key=len, reverse=True)


def _data(e):
    images = e.dataset, e.num_labeled, e.unlabeled, e.num_validation
    return *images, e.data_settings


METHOD_COLUMNS = {
    "test error, chosen epoch": figure("chosen"),
    "last epoch": figure("last"),
    "seeds": run_frame.seeds,
    "epochs": lambda g: (
        run_frame.epochs(g) if METHODS[g.method.iloc[0]].network else MISSING
    ),
    "seconds, stages 1 + 2": lambda g: " + ".join(
        f"{stage.mean():.0f}"
        for stage in (g.pretrain_seconds, g.seconds)
        if stage.notna().all()
    ),
}


def baselines_table(methods):
    """The runs of methods as a table: the arguments of `markdown`.

    The best method comes first, among them the pretraining that they share.
    """
    first = next(iter(methods.values()))
    rows = {METHODS[name].title: g for name, g in methods.items()}
    if first.stage_1.notna().all():
        start = {name: first.stage_1 for name in ("chosen", "last")}
        rows[BASELINE] = first.assign(**start, seconds=None)
    rows = dict(sorted(rows.items(), key=lambda row: row[1].chosen.mean()))
    title = f"GAR and other methods on {run_frame.task(first)}"
    if METHODS[first.method.iloc[0]].network:
        title += f", {run_frame.epochs(first)} epochs"
    rate = first.experiment.iloc[0].stage_2_rate
    if rate:
        title += f", learning rate of stage 2 {rate:g}"
    title += ": test error, percent"
    return table(rows, METHOD_COLUMNS), made_on(rows), title
