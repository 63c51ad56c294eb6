"""Tables of other packages: how they are split and scaled."""

import numpy as np

from reproduction.datasets import packages


def test_a_table_is_scaled_by_its_training_rows():
    rng = np.random.default_rng(1)
    x = rng.normal([5.0, -300.0, 7.0], [2.0, 40.0, 0.0], (30, 3))
    names = np.array(["b", "a", "c"])[np.arange(30) % 3]
    data = packages.load_table("fruit", "Fruit", "made up", lambda: (x, names))
    assert (len(data.x_train), len(data.x_test)) == (20, 10)
    assert (data.num_classes, data.y_train.dtype) == (3, "int64")
    np.testing.assert_allclose(data.x_train.mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(data.x_train.std(0), [1, 1, 0], atol=1e-6)
    # One map took both parts there, and each row kept its class.
    scaled = np.concatenate([data.x_train, data.x_test])
    classes = np.concatenate([data.y_train, data.y_test])
    order, back = np.argsort(x[:, 0]), np.argsort(scaled[:, 0])
    slope = np.polyfit(x[order, 0], scaled[back, 0], 1)
    np.testing.assert_allclose(
        np.polyval(slope, x[order, 0]), scaled[back, 0], atol=1e-5
    )
    assert [*np.array(["a", "b", "c"])[classes[back]]] == [*names[order]]
