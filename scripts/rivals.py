"""GAR and other semi-supervised methods on the same network and labels."""

import sys
from dataclasses import dataclass, replace
from typing import Literal

from reproduction import cli, experiment_command, report
from reproduction.methods import METHODS
from reproduction.settings import EXPERIMENTS, GRAPH_BASELINES

IN_MEMORY = tuple(name for name in METHODS if METHODS[name].in_memory)


@dataclass(frozen=True)
class Options(experiment_command.DataOptions):
    """Options of this script."""

    method: tuple[Literal[("all", *METHODS)], ...] = ("all",)
    """Methods to run: all, or some of them."""
    data: Literal[tuple(EXPERIMENTS)] = "mnist"
    """Data set; docs/experiments.md tells where their files come from."""
    labels: tuple[int, ...] | None = None
    """Numbers of labelled images; by default the least of the data set. A wrong
    one lists them."""
    rate: float | None = None
    """Learning rate of stage 2, for all methods that train a network. By
    default the paper's, 0.01."""

    def __post_init__(self):
        super().__post_init__()
        cli.check_values("--method", self.method, ("all", *METHODS))
        cli.check_above_0("--rate", self.rate)
        if self.rate is not None and not {*self.methods} - {*GRAPH_BASELINES}:
            raise ValueError(
                "--rate is for the methods that train a network, and "
                f"{', '.join(self.methods)} train none. Leave it out, or name "
                "another --method as well"
            )
        streamed = any(e.unlabeled != "train" for e in super().experiments)
        for what, wrong in (
            (f"--data {self.data}", streamed and {*IN_MEMORY}),
            ("--save-models", self.save_models and {*GRAPH_BASELINES}),
        ):
            refused = [m for m in self.methods if m in (wrong or ())]
            if refused:
                raise ValueError(
                    f"{what} is not for the method {refused[0]}. Name the "
                    "methods to run with --method, without "
                    f"{', '.join(refused)}"
                )

    @property
    def experiments(self):
        """The settings of each run, before the common options apply."""
        found = []
        for experiment in super().experiments:
            for method in self.methods:
                rate = None if method in GRAPH_BASELINES else self.rate
                e = experiment.with_method(method)
                found.append(replace(e, stage_2_rate=rate))
        return found

    @property
    def methods(self):
        return tuple(METHODS) if "all" in self.method else self.method

    @property
    def wanted_labels(self):
        least = [*EXPERIMENTS[self.data]][:1]
        return least if self.labels is None else self.labels


if __name__ == "__main__":
    sys.exit(experiment_command.main(Options, __doc__, report.show_baselines))
