"""The terms that the methods' losses are made of, and their schedules.

Terms take logits `(m, n)` of any float dtype and give float32, a number for
each image. Schedules take the share of the training that is done, a float32
scalar from 0 to 1, and give a factor from 0 to 1.
"""

from keras import ops


def mean_over(chosen, values):
    """The mean of the values that are chosen; 0 if there is none."""
    weights = ops.cast(chosen, values.dtype)
    return ops.sum(weights * values) / ops.maximum(ops.sum(weights), 1.0)


def probabilities(logits):
    """`p`, the softmax of the logits, in float32."""
    return ops.softmax(ops.cast(logits, "float32"), axis=-1)


def entropy(logits):
    """`-sum_j p_j log p_j` of each image, `(m,)`."""
    log_p = ops.log_softmax(ops.cast(logits, "float32"), axis=-1)
    return -ops.sum(ops.exp(log_p) * log_p, axis=-1)


def divergence(logits, others):
    """`sum_j p_j (log p_j - log q_j)` of each image; `others` are of q."""
    log_p = ops.log_softmax(ops.cast(logits, "float32"), axis=-1)
    log_q = ops.log_softmax(ops.cast(others, "float32"), axis=-1)
    return ops.sum(ops.exp(log_p) * (log_p - log_q), axis=-1)


def squared_distance(logits, others):
    """The mean over the classes of `(p_j - q_j)^2`, for each image, `(m,)`."""
    difference = probabilities(logits) - probabilities(others)
    return ops.mean(ops.square(difference), axis=-1)


def gaussian_ramp(done, end):
    """`exp(-5 (1 - done/end)^2)` up to `end`, then 1 (Laine & Aila)."""
    left = 1.0 - ops.minimum(done / end, 1.0)
    return ops.exp(-5.0 * ops.square(left))
