"""The reproduction as a whole: its steps, and how it ends."""

import importlib
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import reproduce

STEPS = 14


def options(folder, *words):
    line = ["--results", str(folder), *words]
    return reproduce.parser().parse_args(line)


def test_each_step_is_a_command_that_is_taken(tmp_path):
    lines = reproduce.steps(options(tmp_path, "--backend", "jax"))
    assert len(lines) == STEPS
    for python, path, *line in lines:
        assert python == sys.executable
        script = importlib.import_module(Path(path).stem)
        found = script.parser().parse_args(line)
        assert found.results == tmp_path
        assert getattr(found, "backend", "jax") == "jax"


@pytest.mark.parametrize(
    ("ends", "status", "told"),
    [
        ({}, 0, "14 steps, 0 ended with an error."),
        ({"table3.py": 2}, 1, "1 ended with an error.\npython "),
        ({"report.py": -9}, 1, "\n  ended with status -9: see above\n"),
        ({"benchmark.py": 130}, 130, "step 1 of 14: python "),
    ],
)
def test_what_failed_is_told_at_the_end(
    ends, status, told, tmp_path, monkeypatch, capsys
):
    def run(line):
        return SimpleNamespace(returncode=ends.get(Path(line[1]).name, 0))

    monkeypatch.setattr(subprocess, "run", run)
    assert reproduce.main(options(tmp_path)) == status
    assert told in capsys.readouterr().out


def test_the_commands_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.delattr(subprocess, "run")
    assert reproduce.main(options(tmp_path, "--dry-run")) == 0
    assert len(capsys.readouterr().out.splitlines()) == STEPS
