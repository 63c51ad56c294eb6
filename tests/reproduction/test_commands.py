"""Command lines: what is wrong is told, how they end, and what is left."""

import argparse
import importlib
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import fresh
import pytest
from made_records import write_record

from reproduction import commands, plan
from reproduction.settings import TABLE_1
from reproduction.studies import STUDIES

SCRIPTS = Path(__file__).parents[2] / "scripts"
WITH_PARSER = sorted(
    path.stem
    for path in SCRIPTS.glob("*.py")
    if "commands." in path.read_text("utf-8")
)


def parser_of(name):
    return importlib.import_module(name).parser()


# Options of the scripts, and wrong values of them.
WRONG = [
    ("epochs pretrain-epochs images-per-epoch jobs", "0 -1 1.5 x nan 1e3"),
    ("rate", "0 -1 nan inf x"),
    ("seeds", "abc 0,x -1 1.5 5-2 0,,1 1, 0- nan 1e3 2--3"),
    ("labels", "x 1.5"),
    (
        "backend frobenius-of balance-of precision data study method",
        "mxnet 0",
    ),
    ("data-dir record readme", "{gone} {file}/below"),
]
# What may be right is not known before it is looked for.
ANY_WORD = ("ray", "results", "output")


@pytest.mark.parametrize("name", WITH_PARSER)
def test_no_wrong_value_of_any_option_is_taken(name, tmp_path, capsys):
    places = {name: tmp_path / name for name in ("file", "gone")}
    places["file"].touch()
    made = parser_of(name)
    for action in made._actions[1:]:
        (option,) = action.option_strings
        values = [
            value.format(**places)
            for names, listed in WRONG
            if option.removeprefix("--") in names.split()
            for value in listed.split()
        ]
        if action.nargs == 0:
            values = ["yes"]
        assert values or option[2:] in ANY_WORD, f"What is a wrong {option}?"
        for value in values:
            with pytest.raises(SystemExit) as end:
                pytest.fail(f"taken: {made.parse_args([option, value])}")
            *usage, said = capsys.readouterr().err.splitlines()
            assert end.value.code == commands.EXIT_USAGE == 2
            assert usage[0].startswith("usage: ") and ": error: " in said


def test_options_come_as_given():
    made = parser_of("table1")
    words = "--seeds 0,2 --labels 100 --results a --epochs 3 --share-stage-1"
    options = made.parse_args(words.split())
    assert (options.seeds, options.labels, options.epochs) == ([0, 2], [100], 3)
    assert options.results == Path("a") and options.share_stage_1
    usual = made.parse_args([])
    assert usual.seeds == [*range(10)] and usual.labels == [*TABLE_1]
    with pytest.raises(SystemExit):
        made.parse_args(["--jobs", "2", "--ray", "auto"])


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (ValueError("first\n   second"), 2, "error: first second\n"),
        (FileNotFoundError(2, "Gone", "a"), 2, "error: [Errno 2] Gone: 'a'\n"),
        (ImportError("pip install x"), 2, "error: pip install x\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
    ],
)
def test_what_ends_a_script_is_one_line(
    error, status, line, monkeypatch, capsys
):
    def run(options):
        raise error

    monkeypatch.setattr(sys, "argv", ["script.py"])
    assert commands.main(argparse.ArgumentParser(), run) == status
    assert capsys.readouterr() == ("", line)


# Settings by the command line, and what is left to be run.

MNIST = replace(TABLE_1[100], epochs=20, precision="bfloat16")


def options_of(*words):
    return commands.training_parser("").parse_args(words)


# What an import may make of Ctrl-C.
LOADING = """
import sys, time
sys.path.insert(0, sys.argv[1])
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from reproduction import commands
assert "keras" not in sys.modules and "numpy" not in sys.modules
with commands.loading():
    print("loading", flush=True)
    try:
        time.sleep(600)
    except BaseException:
        pass
"""


@pytest.mark.slow
def test_ctrl_c_while_libraries_load_is_one_line():
    process = fresh.start("-c", LOADING, SCRIPTS)
    assert process.stdout.readline() == "loading\n"
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, "interrupted\n")


def test_what_an_arm_is_about_stays(monkeypatch):
    made = []

    def run_table(options, experiments, show):
        made.extend(commands.apply(options, e, "float32") for e in experiments)

    monkeypatch.setattr(commands, "run_table", run_table)
    study = importlib.import_module("study")
    words = "--study limits --epochs 2 --pretrain-epochs 100 --frobenius-of Z"
    study.main(study.parser().parse_args(words.split()))
    assert {e.epochs for e in made} == {2}
    assert {e.method[0].frobenius_of for e in made} == {"Z"}
    # Arms with a stage 1 of 20 epochs, or of pairs of digits, keep theirs.
    assert {e.pretrain_epochs for e in made} == {100, 20, 200}
    # And those with a balance of their own.
    made.clear()
    words = "--study balance --balance-of diagonal --frobenius-of Z"
    study.main(study.parser().parse_args(words.split()))
    assert len(set(made)) == len(STUDIES["balance"].arms)


def test_options_that_are_not_given_leave_an_experiment_as_it_is():
    sums = MNIST.with_term(balance_of="column sums")
    assert commands.apply(options_of(), sums, "bfloat16") == sums
    given = options_of("--balance-of", "diagonal", "--epochs", "3")
    changed = commands.apply(given, sums, "float32")
    assert changed == replace(MNIST, epochs=3, precision="float32")
    # What a method has no part in stays as it is: its runs are the same.
    spreading = MNIST.with_method("label-spreading")
    for precision in ("bfloat16", "float32"):
        assert commands.apply(given, spreading, precision) == spreading


def test_the_plan_has_hours_from_records(tmp_path, monkeypatch):
    monkeypatch.setattr(plan.paths, "reference", lambda: tmp_path)
    write_record(tmp_path, MNIST, 0)
    longer = replace(MNIST, pretrain_epochs=4000, epochs=200)
    other = replace(MNIST, network="mlp")
    *lines, last = plan.text([MNIST, longer, other], [0], tmp_path).splitlines()
    # 120 s of 2,000 epochs, and 36 s an epoch: 2.07 hours.
    assert lines == [
        "mnist-100 seed 0, 4000 + 200 epochs, bfloat16: about 2.1 hours",
        "mnist-100 seed 0, 2000 + 20 epochs, bfloat16: no record tells the "
        "hours",
    ]
    assert last == (
        "Runs: 3. Finished: 1. Left: 2, about 2.1 hours one after another, "
        "1 of unknown length."
    )
