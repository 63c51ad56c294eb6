"""Former names of modules: importing one warns and gives the module itself."""

import importlib
import sys
import warnings
from importlib import util

MOVED = {
    "alerts": "utils.warnings",
    "additions": "methods.options",
    "backend": "engine.backend",
    "batches": "engine.batches",
    "benchmarks.floor": "benchmarks.roofline",
    "benchmarks.paths": "benchmarks.variants",
    "benchmarks.store": "benchmarks.records",
    "benchmarks.tables": "report.benchmarks",
    "benchmarks.workloads": "benchmarks.cases",
    "checks": "utils.validation",
    "cli": "utils.cli",
    "compiled": "engine.jax_epochs",
    "datasets.files": "datasets.cache",
    "estimator": "classification.estimator",
    "experiments.cluster": "experiments.workers.cluster",
    "experiments.extending": "experiments.continuation",
    "experiments.keepers": "experiments.recorder",
    "experiments.paper": "report.published",
    "experiments.parallel": "experiments.workers.processes",
    "experiments.progress": "utils.progress",
    "experiments.worlds": "experiments.data",
    "extended": "methods.gar",
    "figures": "report.plots",
    "fitting": "classification.fit",
    "graphs": "report.plots.graph_statistics",
    "report.markdown": "report.layout",
    "report.plots.drawing": "report.plots.style",
    "report.rivals": "report.comparison",
    "rivals": "methods",
    "rivals.entropy": "methods.entropy_minimization",
    "rivals.pixels": "methods.transductive",
    "rivals.terms": "methods.losses",
}


class OldNames:
    """Finder and loader of modules by the names of `MOVED`."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        package, _, module = name.partition(".")
        if package != "gar_keras" or new_name(module) is None:
            return None
        return util.spec_from_loader(name, cls)

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        old = module.__name__
        new = f"gar_keras.{new_name(old.partition('.')[2])}"
        found = importlib.import_module(new)
        warnings.warn(
            f"{old} has become {new}. Import it by that name.",
            DeprecationWarning,
            stacklevel=2,
        )
        # What is in sys.modules in the end is what the importer gets.
        sys.modules[old] = found


def new_name(module):
    """The name of a module of the package that had another one, or `None`.

    Example:

    >>> new_name("rivals.vat")
    'methods.vat'
    """
    if module in MOVED:
        return MOVED[module]
    parent, _, child = module.rpartition(".")
    return f"{MOVED[parent]}.{child}" if parent in MOVED else None
