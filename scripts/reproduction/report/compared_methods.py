"""The methods of stage 2 compared, with the same labels and network."""

import pandas as pd

from reproduction.methods import METHODS
from reproduction.report import run_frame
from reproduction.report.estimates import MISSING
from reproduction.report.published import BASELINE
from reproduction.report.tables import figure, table_of_runs


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
    found = []
    for e in sorted(trained, key=lambda e: len(trained[e]), reverse=True):
        methods = trained[e]
        others = [g.seed for name, g in methods.items() if name != "gar"]
        if not others:
            continue
        if "gar" in methods:
            # Seeds of other studies can be picked by their errors.
            g = methods["gar"]
            methods["gar"] = g[g.seed.isin(pd.concat(others))]
            if methods["gar"].empty:
                del methods["gar"]
        found.append(methods | graph.pop(_data(e), {}))
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


def baselines_tables(frame):
    """Each comparison as a table: lists of the arguments of `markdown`.

    The best method comes first, among them the pretraining that they share.
    """
    tables = []
    for methods in compare(frame):
        # Of those that begin with stage 1, if there are such.
        first = max(
            methods.values(), key=lambda g: (g.stage_1.notna().all(), len(g))
        )
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
        made = ["experiment", "precision", "backend", "hardware"]
        runs = pd.concat([g[made] for g in rows.values()])
        notes = [run_frame.made_on(runs)]
        tables.append((table_of_runs(rows, METHOD_COLUMNS), notes, title))
    return tables
