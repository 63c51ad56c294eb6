"""Tests of the former names of modules."""

import importlib
import sys

import pytest

from gar_keras._moved import MOVED


@pytest.mark.parametrize("old", [*MOVED, "rivals.vat", "figures.style"])
def test_old_names_give_the_same_module_and_warn(old, monkeypatch):
    monkeypatch.delitem(sys.modules, f"gar_keras.{old}", raising=False)
    with pytest.warns(DeprecationWarning, match="has become gar_keras."):
        module = importlib.import_module(f"gar_keras.{old}")
    assert module is sys.modules[module.__name__]
    assert module.__name__ != f"gar_keras.{old}"


def test_a_module_that_never_was_is_not_found():
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("gar_keras.rivals.nothing")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("gar_keras.nothing")
