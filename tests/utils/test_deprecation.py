"""Tests of former names, which still work."""

import importlib

import pytest

from gar_keras.utils.deprecation import former_arguments


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("gar_keras", "random_moves", "random_augmentation"),
        ("gar_keras.augmentation", "random_moves", "random_augmentation"),
        ("gar_keras.methods.base", "Rival", "Method"),
    ],
)
def test_a_former_name_warns_and_gives_the_same(module, old, new):
    # Some of them load Keras, for which the other tests need not wait.
    module = importlib.import_module(module)
    with pytest.warns(DeprecationWarning, match=f"{old} has become {new}"):
        found = getattr(module, old)
    assert found is getattr(module, new)


def test_a_name_that_never_was_is_not_found():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = importlib.import_module("gar_keras.augmentation").nothing


@former_arguments(colour="color")
def paint(color="white"):
    return color


def test_a_former_argument_warns_and_counts():
    with pytest.warns(DeprecationWarning, match="colour has become color"):
        assert paint(colour="red") == "red"


def test_both_names_of_an_argument_are_refused():
    with pytest.raises(TypeError, match="former name colour, not both"):
        paint(colour="red", color="blue")
