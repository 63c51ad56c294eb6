"""What is written while Keras is loaded is shown if that fails."""

import logging
import os
import sys

import pytest

from gar_keras.utils.loading import held_back_unless_it_fails, load_keras


def write(monkeypatch):
    """Writes as C++ code does, and as Python does in a program of its own."""
    os.write(2, b"a note\n")
    stream = open(2, "w", closefd=False)
    monkeypatch.setattr(sys, "stderr", stream)
    print("a warning", file=sys.stderr)


def test_notes_are_held_back(capfd, monkeypatch):
    with held_back_unless_it_fails():
        write(monkeypatch)
    os.write(2, b"afterwards\n")
    assert capfd.readouterr().err == "afterwards\n"


def test_notes_are_shown_if_it_fails(capfd, monkeypatch):
    with pytest.raises(ImportError), held_back_unless_it_fails():
        write(monkeypatch)
        raise ImportError("no such library")
    os.write(2, b"afterwards\n")
    assert capfd.readouterr().err == "a note\na warning\nafterwards\n"


def test_without_standard_error_nothing_is_in_the_way(monkeypatch):
    def dup(descriptor):
        raise OSError("Bad file descriptor")

    monkeypatch.setattr(os, "dup", dup)
    monkeypatch.setattr(sys, "stderr", None)
    done = []
    with held_back_unless_it_fails():
        done.append(1)
    assert done


def test_warnings_of_tensorflow_are_left_out(monkeypatch):
    logger = logging.getLogger("tensorflow")
    monkeypatch.setattr(logger, "level", logging.INFO)
    load_keras()
    assert not logger.isEnabledFor(logging.WARNING)
    assert logger.isEnabledFor(logging.ERROR)
