"""The reproduction as a whole: its steps, and how it ends."""

import importlib
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import reproduce

STEPS = 14
WORDS = ["--results", "a folder", "--jobs", "2", "--dry-run"]


@pytest.mark.parametrize(
    ("ends", "status", "told"),
    [
        ({}, 0, "14 steps, 0 ended with an error."),
        ({"table2.py": 2}, 1, "1 ended with an error.\npython "),
        ({"rivals.py": -9}, 1, "\n  ended with status -9: see above\n"),
        ({"table1.py": 130}, 130, "step 1 of 14: python "),
    ],
)
def test_each_step_is_a_command_that_is_taken_and_what_failed_is_told(
    ends, status, told, monkeypatch, capsys
):
    lines = []

    def run(line):
        lines.append(line)
        return SimpleNamespace(returncode=ends.get(Path(line[1]).name, 0))

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(sys, "argv", ["reproduce.py", *WORDS])
    assert reproduce.main(reproduce.parser().parse_args(WORDS)) == status
    assert told in capsys.readouterr().out
    assert len(lines) == (1 if status == 130 else STEPS)
    for python, path, *words in lines:
        assert python == sys.executable
        script = importlib.import_module(Path(path).stem)
        found = script.parser().parse_args(words)
        assert found.results == Path("a folder")
        assert found.share_stage_1 and found.dry_run
