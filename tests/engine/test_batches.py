"""Which images make up the batches, against Algorithm 1."""

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
import numpy as np
import pytest

from gar_keras.engine.batches import BatchPlan

quick = settings(max_examples=50, deadline=None)


@st.composite
def plans(draw):
    size = draw(st.integers(1, 40))
    guides = draw(st.integers(0, 12))
    return BatchPlan(
        size=size,
        batch=draw(st.integers(1, 50)),
        guides=guides,
        guides_per_batch=draw(st.integers(0, guides)),
        seed=draw(st.integers(0, 2**40)),
        per_epoch=draw(st.none() | st.integers(1, size)),
    )


numbers = st.integers(1, 1000)


@quick
@given(plan=plans(), number=numbers)
def test_epoch_sees_each_image_of_its_window_once(plan, number):
    order, _ = plan.epoch(number)
    first = (number - 1) * plan.per_epoch
    window = (first + np.arange(plan.per_epoch)) % plan.size
    np.testing.assert_array_equal(np.sort(order), np.sort(window))


@quick
@given(plan=plans(), number=numbers)
def test_guides_of_a_batch_are_distinct(plan, number):
    _, guides = plan.epoch(number)
    assert guides.shape == (plan.steps, plan.guides_per_batch)
    for batch in guides:
        assert len(set(batch.tolist())) == len(batch)
        assert all(0 <= guide < plan.guides for guide in batch)


@quick
@given(plan=plans(), number=numbers)
def test_epoch_is_a_function_of_seed_and_number(plan, number):
    for first, second in zip(
        plan.epoch(number), plan.epoch(number), strict=True
    ):
        np.testing.assert_array_equal(first, second)


@quick
@given(plan=plans())
def test_steps_cover_the_epoch_and_no_more(plan):
    assert plan.steps * plan.batch >= plan.per_epoch
    assert (plan.steps - 1) * plan.batch < plan.per_epoch


@pytest.mark.parametrize(
    "size, batch, guides, steps",
    [(60000, 112, (100, 16), 536), (73257, 32, (1000, 96), 2290)]
    + [(24300, 96, (300, 32), 254), (100, 128, (0, 0), 1)],
    ids=["MNIST", "SVHN", "NORB", "stage 1"],
)
def test_steps_of_the_papers_epochs(size, batch, guides, steps):
    plan = BatchPlan(size, batch, *guides)
    assert plan.steps == steps
    # 60,000 = 535 * 112 + 80: the last batch holds what is left.
    assert size - (steps - 1) * batch <= batch


BIG = BatchPlan(size=500, batch=10, guides=20, guides_per_batch=5)


def test_epochs_differ():
    (first, guides), (second, other_guides) = BIG.epoch(1), BIG.epoch(2)
    assert (first != second).any()
    assert (guides != other_guides).any()


def test_seeds_differ():
    other = BatchPlan(500, 10, 20, 5, seed=1)
    for mine, its in zip(BIG.epoch(1), other.epoch(1), strict=True):
        assert (mine != its).any()


def test_seed_and_epoch_are_not_added_up():
    mine, its = BatchPlan(500, 10, seed=1), BatchPlan(500, 10, seed=2)
    assert (mine.epoch(2)[0] != its.epoch(1)[0]).any()


def test_guides_are_drawn_afresh_for_every_batch():
    _, guides = BIG.epoch(1)
    sets = {frozenset(batch) for batch in guides.tolist()}
    # 15,504 sets are possible: of 50 draws, one pair alike is rare enough.
    assert len(sets) >= 48


def test_guides_are_drawn_evenly():
    plan = BatchPlan(20000, 10, guides=8, guides_per_batch=3)
    _, guides = plan.epoch(1)
    counts = np.bincount(guides.ravel(), minlength=8)
    # 2,000 draws with p = 3/8: a standard deviation of 22 around 750.
    assert np.abs(counts - 750).max() < 5 * 22


def test_order_is_even_too():
    firsts = [BatchPlan(5, 1, seed=s).epoch(1)[0][0] for s in range(1000)]
    # 1,000 draws with p = 1/5: a standard deviation of 13 around 200.
    assert np.abs(np.bincount(firsts) - 200).max() < 5 * 13


def test_all_guides_in_every_batch():
    _, guides = BatchPlan(30, 10, guides=4, guides_per_batch=4).epoch(1)
    np.testing.assert_array_equal(np.sort(guides, axis=1), [[0, 1, 2, 3]] * 3)


def test_order_does_not_depend_on_the_guides():
    order, _ = BatchPlan(500, 10).epoch(3)
    np.testing.assert_array_equal(order, BIG.epoch(3)[0])


def test_windows_take_turns_and_wrap():
    plan = BatchPlan(size=5, batch=2, per_epoch=3)
    windows = [sorted(plan.epoch(i)[0].tolist()) for i in (1, 2, 3, 4, 5, 6)]
    assert windows == [
        [0, 1, 2], [0, 3, 4], [1, 2, 3], [0, 1, 4], [2, 3, 4], [0, 1, 2],
    ]  # fmt: skip


def test_indices_are_int64():
    order, guides = BIG.epoch(1)
    assert order.dtype == guides.dtype == "int64"
    assert BatchPlan(5, 2).epoch(1)[1].dtype == "int64"


def test_numpy_integers_are_integers():
    plan = BatchPlan(np.int64(500), np.int32(10), seed=np.uint8(3))
    expected = BatchPlan(500, 10, seed=3).epoch(1)[0]
    np.testing.assert_array_equal(plan.epoch(np.int64(1))[0], expected)


def test_more_guides_than_labelled_images_are_refused():
    with pytest.raises(ValueError, match="guides_per_batch=5, guides=4"):
        BatchPlan(10, 2, guides=4, guides_per_batch=5)


@pytest.mark.parametrize(
    "name", ["size", "batch", "guides", "guides_per_batch", "seed", "per_epoch"]
)
@pytest.mark.parametrize("bad", [-1, 1.5, True, "3", np.nan], ids=repr)
def test_anything_but_a_count_is_refused(name, bad):
    fields = dict(size=10, batch=2, guides=5, guides_per_batch=2, seed=0)
    with pytest.raises(ValueError, match=f"Received: {name}={bad!r}"):
        BatchPlan(**{**fields, name: bad})


@pytest.mark.parametrize(
    "fields",
    [dict(size=0), dict(batch=0), dict(per_epoch=0), dict(per_epoch=11)],
    ids=str,
)
def test_count_out_of_range_is_refused(fields):
    (name,) = fields
    with pytest.raises(ValueError, match=f"{name} must be an integer"):
        BatchPlan(**{"size": 10, "batch": 2, **fields})


@pytest.mark.parametrize("number", [0, -1, 1.0, None])
def test_epochs_are_counted_from_1(number):
    with pytest.raises(ValueError, match="number must be an integer"):
        BIG.epoch(number)
