"""The records of benchmarks, checked against the times in them."""

from typing import Literal

import numpy as np
from pydantic import ConfigDict, model_validator

from reproduction import paths
from reproduction.benchmarks import timing
from reproduction.settings import Precision
from reproduction.strict_models import (
    Count,
    Environment,
    Number,
    Part,
    Text,
    check,
)


class Machine(Environment):
    """What a benchmark was made on."""

    backend: Text
    backend_version: Text
    device_kind: Text
    git_revision: Text | None
    keras: Text
    python: Text


class Spread(Part):
    median: float
    quartiles: list[float]
    all: list[float]

    def is_like(self, spread):
        """Whether it is a `timing.spread`, but for what rounding does."""
        wanted = [spread["median"], *spread["quartiles"], *spread["all"]]
        received = [self.median, *self.quartiles, *self.all]
        if len(received) != len(wanted):
            return False
        return np.allclose(received, wanted, rtol=1e-9, atol=0)


class OverheadSettings(Part):
    """What the costs of the regularizer were measured with."""

    batch_size: Count
    num_classes: Count
    num_images: Count
    precision: Precision
    steps: Count
    pairs: Count


class SpeedSettings(Part):
    """What a speed was measured with."""

    task: Literal["regularize", "pretrain", "evaluate"]
    network: Text
    path: Text
    precision: Precision
    images: Count
    stretch: Count
    pairs: Count


class Case(Part):
    """What was measured; the last four are of the speed of training."""

    # Earlier versions measured more, which is not shown any more.
    model_config = ConfigDict(extra="allow")

    case: OverheadSettings | SpeedSettings
    environment: Machine
    reference_ms: Spread
    ms: Spread
    ratio: Spread
    difference_ms: Spread
    speedup: Spread | None = None
    images_per_second: Number | None = None
    seconds: Number | None = None
    reference_seconds: Number | None = None

    @model_validator(mode="after")
    def _agrees(self):
        """Refuses what does not follow from the times of the pairs."""
        plain, ours = self.reference_ms.all, self.ms.all
        m = self.case.pairs
        counted = len(plain) == len(ours) == m and min(plain + ours) > 0
        check(counted, f"ms.all and reference_ms.all: {m} times above 0", ours)
        pairs = [*zip(plain, ours, strict=True)]
        wanted = timing.spreads(pairs)
        if isinstance(self.case, SpeedSettings):
            wanted["speedup"] = timing.spread([a / b for a, b in pairs])
            # In a step, in a pass over all images, or in 1,000 of them.
            images = (self.images_per_second or 0) * self.ms.median / 1000
            known = 0 < images < max(self.case.images, 1000) + 1
            check(known, "images_per_second", self.images_per_second)
        for name, spread in wanted.items():
            found = getattr(self, name)
            follows = found is not None and found.is_like(spread)
            check(follows, f"{name}: what follows from the times", found)
        return self


class Benchmark(Part):
    """The benchmarks of a kind on a machine."""

    format: Literal[1]
    kind: Literal["overhead", "benchmark"]
    cases: list[Case]

    @model_validator(mode="after")
    def _agrees(self):
        overhead = self.kind == "overhead"
        wanted = OverheadSettings if overhead else SpeedSettings
        cases = [entry.case for entry in self.cases]
        of_kind = all(isinstance(case, wanted) for case in cases)
        check(of_kind, f"cases: of the kind {self.kind}", cases)
        check(len({*cases}) == len(cases), "cases: each one once", cases)
        return self

    @property
    def expected_paths(self):
        """Where it belongs in a results folder, by each case."""
        return [
            paths.path_of_benchmark(self.kind, vars(case.environment), "")
            for case in self.cases
        ]
