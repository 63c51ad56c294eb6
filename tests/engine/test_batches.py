"""Which images make up the batches, against Algorithm 1."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gar_keras.engine import batches
from gar_keras.engine.batches import BatchSampler

quick = settings(max_examples=50, deadline=None)


@st.composite
def samplers(draw):
    size = draw(st.integers(1, 40))
    num_labeled = draw(st.integers(0, 12))
    return BatchSampler(
        size=size,
        batch=draw(st.integers(1, 50)),
        num_labeled=num_labeled,
        labeled_per_batch=draw(st.integers(0, num_labeled)),
        seed=draw(st.integers(0, 2**40)),
        images_per_epoch=draw(st.none() | st.integers(1, size)),
        in_random_order=draw(st.booleans()),
    )


@quick
@given(sampler=samplers(), number=st.integers(1, 1000))
def test_an_epoch_sees_each_image_of_its_window_once(sampler, number):
    order, chosen = sampler.epoch(number)
    first = (number - 1) * sampler.images_per_epoch
    window = (first + np.arange(sampler.images_per_epoch)) % sampler.size
    in_order, _ = replace(sampler, in_random_order=True).epoch(number)
    np.testing.assert_array_equal(np.sort(in_order), np.sort(window))
    assert len(set(order.tolist())) == sampler.images_per_epoch
    assert order.min() >= 0 and order.max() < sampler.size
    assert chosen.shape == (sampler.steps, sampler.labeled_per_batch)
    for batch in chosen:
        assert len(set(batch.tolist())) == len(batch)
        assert all(0 <= i < sampler.num_labeled for i in batch)
    # A function of seed and number.
    again = sampler.epoch(number)
    for now, before in zip(again, (order, chosen), strict=True):
        np.testing.assert_array_equal(now, before)


BIG = BatchSampler(size=500, batch=10, num_labeled=20, labeled_per_batch=5)


def test_epochs_and_seeds_differ():
    # Nor are the two added up: 0 and 2, 1 and 1.
    epochs = [
        replace(BIG, seed=seed).epoch(number)
        for seed in (0, 1, 2)
        for number in (1, 2)
    ]
    for one, other in itertools.combinations(epochs, 2):
        for mine, theirs in zip(one, other, strict=True):
            assert (mine != theirs).any()


def test_labelled_images_are_drawn_evenly():
    sampler = BatchSampler(20000, 10, num_labeled=8, labeled_per_batch=3)
    _, chosen = sampler.epoch(1)
    counts = np.bincount(chosen.ravel(), minlength=8)
    # 2,000 draws with p = 3/8: a standard deviation of 22 around 750.
    assert np.abs(counts - 750).max() < 5 * 22


def test_labelled_images_do_not_depend_on_how_many_are_drawn_at_once(
    monkeypatch,
):
    _, expected = BIG.epoch(1)
    monkeypatch.setattr(batches, "KEYS_AT_ONCE", 3 * BIG.num_labeled)
    _, chosen = BIG.epoch(1)
    np.testing.assert_array_equal(chosen, expected)


def test_epochs_of_sorted_images_see_all_classes():
    sampler = BatchSampler(1000, 10, images_per_epoch=100, seed=3)
    epochs = [sampler.epoch(number)[0] for number in range(1, 12)]
    assert sorted(np.concatenate(epochs[:10])) == [*range(1000)]
    assert sorted(epochs[10]) == sorted(epochs[0])
    # Ten classes of 100, one behind the other.
    assert all(len(set(order // 100)) == 10 for order in epochs)


def test_large_integers_are_not_wrapped_round_on_jax(monkeypatch):
    large = np.array([1, -(2**40)])
    for backend, dtypes in (
        ("jax", ("float64", "int64")), ("tensorflow", ("int64", "int64"))
    ):  # fmt: skip
        monkeypatch.setattr(batches.backend, "name", lambda b=backend: b)
        found = [batches.plain_numbers(x) for x in (large, large[:1])]
        assert tuple(x.dtype for x in found) == dtypes
        np.testing.assert_array_equal(found[0], large)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"num_labeled": 4, "labeled_per_batch": 5}, "labeled_per_batch=5"),
        ({"images_per_epoch": 11}, "Received: images_per_epoch=11"),
    ],
)
def test_numbers_that_do_not_fit_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        BatchSampler(10, 2, **options)
