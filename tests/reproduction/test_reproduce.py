"""The reproduction as a whole: its rehearsal, and how it ends."""

import importlib
from pathlib import Path

import pytest
import reproduce

from reproduction import cli, paths

STEPS = 14


def options(folder, **changes):
    return reproduce.Options(results=Path(folder), **changes)


def test_a_rehearsal_is_one_short_run_of_each_step(tmp_path, monkeypatch):
    chosen = options(tmp_path, rehearse=True)
    steps = reproduce.plan(chosen)
    assert len(steps) == STEPS
    for words in steps:
        path, *line = reproduce.arguments(words, chosen)
        script = importlib.import_module(Path(path).stem)
        monkeypatch.setattr("sys.argv", [path, *line])
        found = cli.parse(script.Options)
        assert found.results == tmp_path / "rehearsal"
        if hasattr(found, "seeds"):
            assert (found.seeds, found.epochs, found.pretrain_epochs) == (
                *("0", 1, 1),
            )
            assert found.images_per_epoch == 1000
        assert getattr(found, "rows", "1") == "1"
        assert getattr(found, "pairs", 2) == 2


def test_a_rehearsal_leaves_the_project_s_records_alone():
    with pytest.raises(ValueError, match="--rehearse makes no records"):
        options(paths.reference(), rehearse=True)


@pytest.mark.parametrize(
    ("ends", "status", "told"),
    [
        ({}, 0, "14 of 14 steps begun, 0 failed."),
        ({"table3.py": (2, "error: no NORB")}, 1, "1 failed.\npython "),
        ({"table3.py": (2, "error: no NORB")}, 1, "\n  error: no NORB\n"),
        ({"report.py": (-9, "")}, 1, "\n  it ended with status -9\n"),
        ({"table2.py": (1, "")}, 1, "14 of 14 steps begun, 0 failed."),
        ({"table2.py": (1, ""), "rivals.py": (2, "x")}, 1, "1 failed."),
        ({"benchmark.py": (130, "")}, 130, "step 1 of 14: python "),
    ],
)
def test_what_failed_is_told_at_the_end(
    ends, status, told, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(
        reproduce,
        "call",
        lambda line, backend: ends.get(Path(line[0]).name, (0, "")),
    )
    assert reproduce.main(options(tmp_path)) == status
    assert told in capsys.readouterr().out


@pytest.mark.slow
def test_the_last_line_of_a_step_s_errors_is_its_reason(capfd):
    code = "import sys; print('a\\nerror: b', file=sys.stderr); sys.exit(2)"
    assert reproduce.call(["-c", code], "tensorflow") == (2, "error: b")
    assert capfd.readouterr().err == "a\nerror: b\n"
