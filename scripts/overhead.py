"""The paper's timing experiment: training with and without GAR's terms.

The paper took 830 s and 882 s for 100 epochs. Here the two take turns in one
process, stretch by stretch, and the ratio of each pair counts. Measure on a
machine that does nothing else.
"""

from dataclasses import dataclass
from dataclasses import replace
from pathlib import Path
from typing import Literal

from gar_keras import cli


@dataclass(frozen=True)
class Options:
    """Options of this script."""

    sweep: Literal["none", "batch", "classes", "images", "all"] = "none"
    """What else to vary: batch size, number of classes, number of images."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Precision between the layers."""
    pairs: int = 10
    """Timed pairs of stretches."""
    steps: int = 40
    """Steps in a stretch."""
    backend: Literal["tensorflow", "jax", "torch"] = "tensorflow"
    """Keras backend."""
    results: Path = Path("results")
    """Folder for overhead.json."""

    def __post_init__(self):
        for name, least in (("pairs", 2), ("steps", 1)):
            cli.check_at_least(f"--{name}", getattr(self, name), least)


SWEEPS = {
    "batch": [{"batch_size": b} for b in (32, 64, 256, 512)],
    "classes": [{"num_classes": n} for n in (100, 1000, 10_000)],
    "images": [{"num_images": m} for m in (600_000, 8_000_000)],
}

if __name__ == "__main__":
    options = cli.parse(Options, __doc__)
    cli.choose_backend(options.backend)
    from rich.console import Console

    from gar_keras.backend import fast_precision
    from gar_keras.benchmarks import Case
    from gar_keras.benchmarks import measure

    auto = options.precision == "auto"
    case = Case(
        precision=fast_precision() if auto else options.precision,
        pairs=options.pairs,
        steps=options.steps,
    )
    names = SWEEPS if options.sweep == "all" else [options.sweep]
    changes = [c for name in names for c in SWEEPS.get(name, [])]
    measure(
        [case, *(replace(case, **change) for change in changes)],
        options.results / "overhead.json",
        Console(highlight=False, soft_wrap=True),
    )
