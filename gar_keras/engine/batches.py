"""Which images make up the batches of an epoch: the loops of Algorithm 1."""

from dataclasses import dataclass

import numpy as np

from gar_keras.utils.validation import check_count
from gar_keras.utils.validation import set_field


@dataclass(frozen=True)
class BatchPlan:
    """The indices of every batch, a function of seed and epoch alone.

    An epoch is one pass over the images in random order, `batch` at a time;
    the last batch holds what is left. With `guides_per_batch` above 0, each
    batch also gets that many guides: labelled images, drawn without
    replacement within a batch and afresh for every batch.

    Stage 1 is a plan over X_L with no guides; stage 2 is a plan over X_U with
    `b_U` images and `b_L` guides from X_L in a batch (paper, Algorithm 1).

    Args:
        size: Number of images to draw from.
        batch: Images in a batch, guides not counted.
        guides: Number of guides to draw from.
        guides_per_batch: Guides in a batch.
        seed: Non-negative integer.
        per_epoch: Images seen in an epoch; `size` by default. If less, the
            epochs take turns: epoch 1 sees the first `per_epoch` images,
            epoch 2 the next, and round again at the end.

    Raises:
        ValueError: if a batch needs more images or guides than there are.

    Example:

    >>> plan = BatchPlan(size=5, batch=2, guides=4, guides_per_batch=1)
    >>> plan.steps
    3
    >>> order, guides = plan.epoch(1)
    >>> sorted(order.tolist()), guides.shape
    ([0, 1, 2, 3, 4], (3, 1))
    """

    size: int
    batch: int
    guides: int = 0
    guides_per_batch: int = 0
    seed: int = 0
    per_epoch: int | None = None

    def __post_init__(self):
        check_count("size", self.size, least=1)
        check_count("batch", self.batch, least=1)
        check_count("guides", self.guides, least=0)
        check_count("guides_per_batch", self.guides_per_batch, least=0)
        check_count("seed", self.seed, least=0)
        if self.guides_per_batch > self.guides:
            raise ValueError(
                f"A batch cannot hold {self.guides_per_batch} different "
                f"labelled images when there are {self.guides}. Received: "
                f"guides_per_batch={self.guides_per_batch}, "
                f"guides={self.guides}. Take fewer labelled images per batch."
            )
        if self.per_epoch is None:
            set_field(self, "per_epoch", self.size)
        check_count("per_epoch", self.per_epoch, least=1, most=self.size)

    @property
    def steps(self):
        """Batches in an epoch."""
        return -(-self.per_epoch // self.batch)

    @property
    def images_per_step(self):
        """Images in a whole batch, the guides among them."""
        return min(self.batch, self.per_epoch) + self.guides_per_batch

    def epoch(self, number):
        """The indices of one epoch.

        Args:
            number: Number of the epoch, counted from 1.

        Returns:
            `(order, guides)`: `order` is `(per_epoch,)`, the images in the
            order in which the batches take them; `guides` is
            `(steps, guides_per_batch)`. Both int64.
        """
        check_count("number", number, least=1)
        rng = np.random.default_rng([self.seed, number])
        first = (number - 1) * self.per_epoch
        order = (first + rng.permutation(self.per_epoch)) % self.size
        return order, self._draw_guides(rng)

    def _draw_guides(self, rng):
        shape = (self.steps, self.guides_per_batch)
        if not self.guides_per_batch:
            return np.zeros(shape, "int64")
        # The smallest keys of each row: a draw without replacement.
        keys = rng.random((self.steps, self.guides), dtype="float32")
        if self.guides_per_batch == self.guides:
            return np.argsort(keys, axis=1)
        last = self.guides_per_batch - 1
        return np.argpartition(keys, last, axis=1)[:, : last + 1]


@dataclass
class Start:
    """Where training begins, which may be known only when it does.

    Attributes:
        epoch: Number of the epoch of the plan to begin with, from 1.
    """

    epoch: int = 1
