"""Command lines: what is wrong is told, and how they end."""

import importlib.util
import io
import sys
from dataclasses import dataclass, field, fields
from pathlib import Path

import fresh
import keras
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reproduction import cli, experiment_command
from reproduction.report import plots

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
    rate: float | None = None
    """Learning rate."""
    draw: bool = False
    """Draw only."""

    def __post_init__(self):
        cli.check_above_0("--rate", self.rate)


@pytest.fixture
def parse(monkeypatch):
    def parse(*arguments):
        monkeypatch.setattr(sys, "argv", ["script.py", *arguments])
        return cli.parse(Options, "A script.")

    return parse


def test_options_come_as_given(parse):
    assert parse() == Options()
    words = "--seeds 0,2 --labels 1 2 --results a --rate 1.5 --draw"
    assert parse(*words.split()) == Options("0,2", (1, 2), Path("a"), 1.5, True)


# Options of the scripts, wrong values, and what is said of them beside both.
WHOLE = "epochs pretrain-epochs images-per-epoch jobs"
CHOICES = (
    "backend frobenius-of balance-of precision data study method tasks "
    "networks precisions sweep tables"
)
RANGES = "takes numbers and ranges such as 0-9"
WRONG = [
    (WHOLE, "0 -1 10000000000", "must be an integer from 1 to"),
    ("pairs", "1 0 -1 10000000000", "must be an integer from 2 to"),
    (f"{WHOLE} pairs labels", "1.5 x nan 5-2 1e3", "(See --help.)"),
    ("rate", "0 -1 nan inf", "finite number above 0"),
    ("rate", "x 1,5", "(See --help.)"),
    ("seeds rows", "abc 0,x x,0 x -1 1.5 5-2 0,,1 1, 0- - nan 1e3", RANGES),
    ("seeds rows", "4294967296 0-10000 0;1 1-2-3 0-9,8-3", RANGES),
    ("rows", "0 99 1,99", "takes numbers from 1 to"),
    ("labels", "7 -1 0 100000000000", "takes"),
    (CHOICES, "mxnet 0", "Expected one of"),
    ("results output", "{file}/a.png", "can be written to"),
    ("record readme", "{folder} {gone} {file}/below", "file that is there"),
    ("data-dir", "{gone} {file} {file}/below", "folder that is there"),
]
# What may be right is not known before it is looked for.
ANY_WORD = ("ray",)
# Of options that take several values.
TWICE = {
    "labels": "1000 1000",
    "method": "vat vat",
    "tasks": "evaluate evaluate",
    "networks": "cnn6 cnn6",
    "precisions": "float32 float32",
    "tables": "table1 table1",
}


def wrong_words(option):
    """Wrong command lines of an option: words, and what is said of them."""
    name = option.name.replace("_", "-")
    if option.type is bool:
        return [(["yes"], "Unrecognized options")]
    found = [
        ([value], f"--{name}", told)
        for names, values, told in WRONG
        if name in names.split()
        for value in values.split()
    ]
    assert found or name in ANY_WORD, f"What is a wrong --{name}?"
    if name in TWICE:
        found += [([], "Received: none"), (TWICE[name].split(), "each once")]
    return [*found, ([""], f"--{name} needs a value")]


@pytest.fixture(params=sorted(SCRIPTS.glob("*.py")), ids=lambda path: path.stem)
def script_options(request, monkeypatch):
    """The class of the options of a script."""
    path = request.param
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    # Where `tyro` looks for its source.
    monkeypatch.setitem(sys.modules, path.stem, module)
    spec.loader.exec_module(module)
    return getattr(module, "Options", plots.Options)


def test_no_wrong_value_of_any_option_is_taken(
    script_options, tmp_path, capsys, monkeypatch
):
    places = {name: tmp_path / name for name in ("file", "folder", "gone")}
    places["file"].touch()
    places["folder"].mkdir()
    (tmp_path / "folder.png").mkdir()
    for option in fields(script_options):
        for words, *told in wrong_words(option):
            words = [word.format(**places) for word in words]
            line = [f"--{option.name.replace('_', '-')}", *words]
            monkeypatch.setattr(sys, "argv", ["script.py", *line])
            with pytest.raises(SystemExit) as end:
                pytest.fail(f"{line} taken: {cli.parse(script_options)}")
            (said,) = capsys.readouterr().err.splitlines()
            assert end.value.code == 2 and said.startswith("error: ")
            assert all(part in said for part in [*words, *told]), said


@pytest.mark.parametrize("name", ["a.json", "a", "gone/a.svg"])
def test_a_figure_is_a_png(name):
    with pytest.raises(ValueError, match="--output takes the name of a .png"):
        plots.Options(output=Path(name))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("--foo 3", "Unrecognized options: --foo, 3 (See --help.)"),
        ("--rate", "Missing value for argument '--rate'."),
        ("--results=", "--results needs a value. Received: ''."),
        ("--seeds 0 1", "Unrecognized options: 1"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(
    line, told, parse, capsys, monkeypatch
):
    # For which tyro frames what it says.
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    monkeypatch.setattr(sys, "stdout", terminal)
    with pytest.raises(SystemExit) as end:
        parse(*line.split())
    assert end.value.code == cli.EXIT_USAGE == 2
    assert capsys.readouterr().err.startswith(f"error: {told}")


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
    assert cli.run(lambda _: cli.EXIT_UNFINISHED, None) == 1


def test_a_backend_that_is_not_installed_is_named(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(SystemExit):
        cli.choose_backend("jax")
    assert "pip install jax" in capsys.readouterr().err


RESTARTED = """
import sys
from reproduction import cli
print("loaded")
cli.choose_backend(sys.argv[1])
import os, keras
print(keras.backend.backend(), os.environ["KERAS_BACKEND"])
"""


@pytest.mark.slow
def test_a_program_starts_again_for_another_backend():
    pytest.importorskip("jax")
    other = "tensorflow" if keras.backend.backend() == "jax" else "jax"
    env = fresh.environment(KERAS_BACKEND=keras.backend.backend())
    printed = fresh.run(RESTARTED, other, env=env)
    assert printed == f"loaded\nloaded\n{other} {other}\n"


@given(st.text(max_size=8) | st.from_regex(r"\d{1,3}(-\d{1,3})?(,\d)*"))
def test_any_text_is_seeds_or_refused(text):
    try:
        seeds = experiment_command.parse_seeds(text)
    except ValueError as error:
        assert "--seeds takes" in str(error)
    else:
        assert seeds and all(0 <= seed <= 10**9 for seed in seeds)
