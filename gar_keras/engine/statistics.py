"""Statistics of BatchNormalization, measured for the weights that there are.

Keras gathers the moving mean and variance with `momentum`, over hundreds of
steps (of 0.99) or thousands (of 0.999). A training on few labels has fewer: its
weights are right, and what inference divides by is not. Here both are measured
anew, over the first batches of a training, of which batch `b` has `m_b`
examples and all have `m`:

    mean = sum_b m_b mean_b / m
    variance = sum_b m_b (variance_b + mean_b²) / m - mean²

Dropout is off meanwhile, as in inference: it would make the variance larger.
Weights, seeds, frozen layers and those with `renorm`, which train on moving
statistics, stay as they are.
"""

import keras
import numpy as np

from gar_keras.engine import backend
from gar_keras.engine.batches import num_examples
from gar_keras.engine.graphs import DROPOUT_LAYERS
from gar_keras.engine.keras_internals import AssignmentScope, flatten_layers
from gar_keras.engine.pipeline import Batches
from gar_keras.utils.validation import is_in_memory

# Batches that are looked at, at most: 2,048 examples of the default size.
MEASURED = 16


class MeasureStatistics(keras.callbacks.Callback):
    """Measures at the end of each epoch: in front of what looks at the model.

    Attributes:
        evaluated: A copy of `network` that is evaluated in its place, or
            `network` itself. Its statistics are those of its own weights.
    """

    def __init__(self, network, data):
        super().__init__()
        self.network = self.evaluated = network
        self._data = data
        self._kept = None
        # Layers whose statistics `fit` gathers for inference alone.
        self._layers = [
            layer
            for layer in flatten_layers(network)
            if isinstance(layer, keras.layers.BatchNormalization)
            and layer.built
            and layer.trainable
            and not getattr(layer, "renorm", False)
        ]
        # A copy has its weights in the same order.
        places = {id(weight): i for i, weight in enumerate(network.weights)}
        self._places = [
            (places[id(layer.moving_mean)], places[id(layer.moving_variance)])
            for layer in self._layers
        ]
        self._moments = self._moments_of_a_batch
        jits = all(layer.supports_jit for layer in flatten_layers(network))
        if backend.name() == "jax" and jits:
            import jax

            self._moments = jax.jit(self._moments_of_a_batch)

    def on_epoch_end(self, epoch, logs=None):
        self.measure()

    def on_train_end(self, logs=None):
        # An optimizer that averages weights has put these in place by now.
        self.measure()

    def measure(self):
        """Measures all statistics, and returns how far off the old ones were.

        Of the layer where that is most, the root mean square over the channels
        of `(old mean - mean) / std` or of `old std / std - 1`.
        """
        if not self._layers:
            return 0.0
        gap = self._measure(self.network)
        if self.evaluated is not self.network:
            self._measure(self.evaluated)
        return gap

    def _measure(self, model):
        values = [weight.value for weight in model.weights]
        # For each layer: m, the sum of means and the sum of squares.
        sums = [
            np.zeros((3, *layer.moving_mean.shape)) for layer in self._layers
        ]
        # Meanwhile layers assign the moments of a batch as they are.
        changed = [(layer, "momentum") for layer in self._layers]
        changed += [
            (layer, "rate")
            for layer in flatten_layers(self.network)
            if isinstance(layer, DROPOUT_LAYERS)
        ]
        before = [getattr(layer, name) for layer, name in changed]
        try:
            for layer, name in changed:
                setattr(layer, name, 0.0)
            for x in self._batches():
                for total, calls in zip(
                    sums, self._moments(values, x), strict=True
                ):
                    for mean, variance in zip(*calls, strict=True):
                        mean = _array(mean)
                        parts = [mean**0, mean, _array(variance) + mean**2]
                        total += num_examples(x) * np.stack(parts)
        finally:
            for (layer, name), value in zip(changed, before, strict=True):
                setattr(layer, name, value)
        gaps = [0.0]
        # Nothing before the end: an exception leaves the old ones.
        for layer, places, total in zip(
            self._layers, self._places, sums, strict=True
        ):
            if not total[0].all() or not np.isfinite(total).all():
                continue
            mean, square = total[1:] / total[0]
            variance = np.maximum(square - mean**2, 0)
            old_mean, old_variance = (model.weights[place] for place in places)
            std = np.sqrt(variance + layer.epsilon)
            old_std = np.sqrt(_array(old_variance) + layer.epsilon)
            for off in ((_array(old_mean) - mean) / std, old_std / std - 1):
                gaps.append(float(np.sqrt(np.mean(off**2))))
            old_mean.assign(mean)
            old_variance.assign(variance)
        return max(gaps)

    def _moments_of_a_batch(self, values, x):
        """Of each layer, the means and the variances of each of its calls."""
        state = zip(self.network.weights, values, strict=True)
        with AssignmentScope(state=state) as scope:
            self.network(x, training=True)
        return [
            (
                scope.values(layer.moving_mean),
                scope.values(layer.moving_variance),
            )
            for layer in self._layers
        ]

    def _batches(self):
        if self._kept is not None:
            return self._kept
        count = min(MEASURED, self._data.sampler.steps)
        made = Batches(self._data)
        batches = (made[number][0] for number in range(count))
        if not all(map(is_in_memory, keras.tree.flatten(self._data.images))):
            # A stream may give its batches only once.
            batches = self._kept = list(batches)
        return batches


def _array(x):
    return keras.ops.convert_to_numpy(x).astype("float64")
