"""Command lines: what is wrong is told, and how they end."""

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import fresh
import keras
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gar_keras.experiments import command
from gar_keras.utils import cli

SCRIPTS = Path(__file__).parents[2] / "scripts"


@dataclass(frozen=True)
class Options:
    """Options of a script."""

    seeds: str = "0-9"
    """Seeds to run."""
    labels: tuple[int, ...] = (100,)
    """Numbers of labels."""
    results: cli.Folder = field(default_factory=lambda: Path("runs"))
    """Folder of the records."""
    time_limit: cli.Seconds = None
    """Seconds after which to stop."""
    draw: bool = False
    """Draw only."""

    def __post_init__(self):
        cli.check_at_least("--time-limit", self.time_limit, 1)


@pytest.fixture
def parse(monkeypatch):
    def parse(*arguments):
        monkeypatch.setattr(sys, "argv", ["script.py", *arguments])
        return cli.parse(Options, "A script.")

    return parse


def test_options_come_as_given(parse):
    assert parse() == Options()
    words = "--seeds 0,2 --labels 1 2 --results a --time-limit 1.5 --draw"
    assert parse(*words.split()) == Options("0,2", (1, 2), Path("a"), 1.5, True)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("--foo 3", "--foo"),
        ("--labels x", "--labels"),
        ("--time-limit 0", "--time-limit must be at least 1. Received: 0.0"),
    ],
)
def test_what_is_wrong_is_told(line, told, parse, capsys, monkeypatch):
    monkeypatch.chdir(SCRIPTS.parent)
    with pytest.raises(SystemExit) as end:
        parse(*line.split())
    assert end.value.code == cli.EXIT_USAGE == 2
    assert told in " ".join(capsys.readouterr().err.replace("│", "").split())


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (ValueError("first\n   second"), 2, "error: first second\n"),
        (FileNotFoundError(2, "Gone", "a"), 2, "error: [Errno 2] Gone: 'a'\n"),
        (ImportError("pip install x"), 2, "error: pip install x\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
    ],
)
def test_what_ends_a_script_is_one_line(error, status, line, capsys):
    def main(options):
        raise options

    with pytest.raises(SystemExit) as end:
        cli.run(main, error)
    assert end.value.code == status
    assert capsys.readouterr() == ("", line)
    assert cli.run(lambda _: cli.EXIT_TIME, None) == 124


def test_a_backend_that_is_not_installed_is_named(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(SystemExit):
        cli.choose_backend("jax")
    assert "pip install jax" in capsys.readouterr().err


RESTARTED = """
import sys
from gar_keras.utils import cli
print("loaded")
cli.choose_backend(sys.argv[1])
import os, keras
print(keras.backend.backend(), os.environ["KERAS_BACKEND"])
"""


@pytest.mark.slow
def test_a_program_starts_again_for_another_backend():
    pytest.importorskip("jax")
    other = "tensorflow" if keras.backend.backend() == "jax" else "jax"
    done = subprocess.run(
        [sys.executable, "-c", RESTARTED, other],
        capture_output=True,
        text=True,
        env=fresh.environment(KERAS_BACKEND=keras.backend.backend()),
    )
    assert done.stdout == f"loaded\nloaded\n{other} {other}\n", done.stderr


@given(st.text(max_size=8) | st.from_regex(r"\d{1,3}(-\d{1,3})?(,\d)*"))
def test_any_text_is_seeds_or_refused(text):
    try:
        seeds = command.parse_seeds(text)
    except ValueError as error:
        assert "--seeds takes" in str(error)
    else:
        assert seeds and all(0 <= seed <= 10**9 for seed in seeds)
