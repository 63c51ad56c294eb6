"""Command lines: one line says what is wrong, and what is allowed."""

import errno
import importlib.util
import os
import subprocess
import sys
import types
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gar_keras import report
from gar_keras.benchmarks import command
from gar_keras.datasets import DataError
from gar_keras.experiments import command as runs
from gar_keras.experiments import folders
from gar_keras.experiments import sweep as sweep_module
from gar_keras.experiments.options import RunnerOptions
from gar_keras.experiments.records import RecordError
from gar_keras.experiments.settings import TABLE_1 as SETTINGS
from gar_keras.experiments.workers.processes import WorkerError
from gar_keras.report.published import TABLE_1
from gar_keras.utils import cli

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture(scope="module")
def table1():
    """The script of Table 1 as a module."""
    spec = importlib.util.spec_from_file_location(
        "table1", SCRIPTS / "table1.py"
    )
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        # Where dataclasses look their annotations up.
        patch.setitem(sys.modules, "table1", module)
        spec.loader.exec_module(module)
        yield module


@pytest.fixture
def parse(table1, monkeypatch):
    def parse(*arguments):
        monkeypatch.setattr(sys, "argv", ["table1.py", *arguments])
        return cli.parse(table1.Options, "Table 1.")

    return parse


def only_line(capsys):
    """The one line of an error, without `error: `."""
    output, errors = capsys.readouterr()
    assert output == ""
    (line,) = errors.splitlines()
    assert line.startswith("error: ")
    return line.removeprefix("error: ")


# Options.


def test_the_defaults_are_the_whole_table(parse, monkeypatch):
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    options = parse()
    assert options.wanted_labels == (100, 600, 1000, 3000)
    assert runs.parse_seeds(options.seeds) == [*range(10)]
    assert options.epochs is options.pretrain_epochs is None
    assert options.backend == "tensorflow"
    assert options.precision == "auto"
    assert options.results == folders.own()
    assert options.time_limit is options.data_dir is options.tensorboard is None
    assert not options.save_models
    assert (options.jobs, options.ray) == (1, None)


def test_options_come_as_given(parse, tmp_path):
    options = parse(
        *["--labels", "100", "600", "--seeds", "0,2,5-7", "--epochs", "3"],
        *["--pretrain-epochs=20", "--frobenius-of", "Z", "--save-models"],
        *["--precision", "bfloat16", "--backend", "jax"],
        *["--results", str(tmp_path), "--time-limit", "1.5"],
    )
    assert options.labels == (100, 600)
    assert runs.parse_seeds(options.seeds) == [0, 2, 5, 6, 7]
    assert (options.epochs, options.pretrain_epochs) == (3, 20)
    assert options.frobenius_of == "Z"
    assert options.precision == "bfloat16"
    assert options.backend == "jax"
    assert options.results == tmp_path
    assert options.time_limit == 1.5
    assert options.save_models


def test_keras_backend_is_heeded(parse, monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    assert parse().backend == "jax"
    assert parse("--backend", "tensorflow").backend == "tensorflow"


OPTIONS = (
    "--backend, --results, --time-limit, --data-dir, --save-models, "
    "--tensorboard, --share-stage-1, --keep-state, --seeds, --epochs, "
    "--pretrain-epochs, --images-per-epoch, --frobenius-of, --balance-of, "
    "--precision, --jobs, --ray, --labels"
)
SEEDS = (
    "--seeds takes numbers and ranges such as 0-9 or 0,2,5-7, up to "
    "4294967295, at most 10000 of them. Received: "
)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--foo 3", f"unknown option --foo. Allowed: {OPTIONS}"),
        ("--epoch 3", f"unknown option --epoch. Allowed: {OPTIONS}"),
        ("mnist", f"unknown value mnist. Allowed: {OPTIONS}"),
        ("--save-models yes", f"unknown value yes. Allowed: {OPTIONS}"),
        ("--epochs", "--epochs needs a value"),
        ("--results", "--results needs a value"),
        ("--epochs x", "--epochs takes a whole number. Received: 'x'"),
        ("--epochs 1.5", "--epochs takes a whole number. Received: '1.5'"),
        ("--epochs 0", "--epochs must be at least 1. Received: 0"),
        (
            "--pretrain-epochs -3",
            "--pretrain-epochs must be at least 1. Received: -3",
        ),
        (
            "--time-limit soon",
            "--time-limit takes a number of seconds. Received: 'soon'",
        ),
        ("--jobs 0", "--jobs must be at least 1. Received: 0"),
        ("--jobs all", "--jobs takes a whole number. Received: 'all'"),
        (
            "--jobs 2 --ray auto",
            "--jobs is for this machine alone: with --ray, as many runs are "
            "made at once as the cluster has room for. Leave one of them out. "
            "Received: --jobs 2 --ray auto",
        ),
        ("--time-limit 0", "--time-limit must be above 0. Received: 0.0"),
        ("--time-limit nan", "--time-limit must be above 0. Received: nan"),
        ("--labels 7", "--labels takes 100, 600, 1000, 3000. Received: 7"),
        ("--labels x", "--labels takes 100, 600, 1000, 3000. Received: x"),
        (
            "--labels 100 6e2",
            "--labels takes 100, 600, 1000, 3000. Received: 6e2",
        ),
        ("--labels", "--labels takes 100, 600, 1000, 3000. Received: none"),
        (
            "--precision half",
            "--precision takes auto, float32, bfloat16. Received: 'half'",
        ),
        (
            "--backend mxnet",
            "--backend takes tensorflow, jax, torch. Received: 'mxnet'",
        ),
        ("--frobenius-of C", "--frobenius-of takes B, Z. Received: 'C'"),
        ("--seeds a", f"{SEEDS}'a'"),
        ("--seeds 5-2", f"{SEEDS}'5-2'"),
        ("--seeds -1", f"{SEEDS}'-1'"),
        ("--seeds 0,,1", f"{SEEDS}'0,,1'"),
        ("--seeds 1.0", f"{SEEDS}'1.0'"),
        ("--seeds 4294967296", f"{SEEDS}'4294967296'"),
        ("--seeds 0-4000000000", f"{SEEDS}'0-4000000000'"),
        (
            "--results setup.cfg",
            "--results takes a folder. Received a file: 'setup.cfg'",
        ),
        (
            "--results setup.cfg/x",
            "--results takes a folder. Received: 'setup.cfg/x' (Not a "
            "directory)",
        ),
        (
            f"--results {'x' * 300}",
            f"--results takes a folder. Received: '{'x' * 300}' (File name "
            "too long)",
        ),
        ("--results=", "--results takes a folder. Received: ''"),
        *(
            (
                f"--data-dir {path}",
                "--data-dir takes a folder that is there. Received: "
                f"'{path}'. Make it first if data are to be downloaded to it",
            )
            for path in ("setup.cfg", "gone")
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    line, message, parse, capsys, monkeypatch
):
    monkeypatch.chdir(SCRIPTS.parent)
    # As narrow as a terminal can be, and yet no line is broken.
    monkeypatch.setenv("COLUMNS", "40")
    with pytest.raises(SystemExit) as end:
        parse(*line.split())
    assert end.value.code == 2
    assert only_line(capsys) == message
    assert os.environ["COLUMNS"] == "40"


CLOSED = """
import os, pathlib, sys
from gar_keras import cli
if os.geteuid() == 0:
    os.setuid(65534)
try:
    cli.check_folder("--results", pathlib.Path(sys.argv[1]))
except ValueError as e:
    print(e)
"""


def test_a_folder_below_a_closed_one_is_told(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    path = closed / "results"
    done = subprocess.run(
        [sys.executable, "-c", CLOSED, path], capture_output=True, text=True
    )
    assert done.stdout == (
        f"--results takes a folder. Received: '{path}' (Permission denied)\n"
    ), done.stderr


def test_the_data_of_a_cluster_need_not_be_here(parse, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", installed("ray"))
    options = parse("--ray", "auto", "--data-dir", "gone")
    assert options.data_dir == Path("gone")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.json", "--output takes the name of a .png file. Received: "),
        ("a", "--output takes the name of a .png file. Received: "),
        ("gone/a.png", "--output is in a folder that is not there: "),
        ("folder.png", "--output takes a file. Received a folder: "),
        ("a.png/a.png", "--output is in a folder that is not there: "),
    ],
)
def test_a_file_that_cannot_be_written_is_told(name, message, tmp_path):
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "a.png").touch()
    path = tmp_path / name
    with pytest.raises(ValueError) as error:
        cli.check_output("--output", path, (".png",))
    assert str(error.value) == f"{message}{path}"


def test_a_file_that_can_be_written_is_taken(tmp_path):
    cli.check_output("--output", None, (".png",))
    for path in (tmp_path / "a.png", Path("a.png")):
        cli.check_output("--output", path, (".png",))


def test_an_unknown_keras_backend_is_refused(parse, capsys, monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "mxnet")
    with pytest.raises(SystemExit) as end:
        parse()
    assert end.value.code == 2
    assert only_line(capsys) == (
        "KERAS_BACKEND must be one of tensorflow, jax, torch. Received: "
        "KERAS_BACKEND='mxnet'"
    )


def test_tensorboard_that_is_not_installed_is_named(parse, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(SystemExit) as end:
        parse("--tensorboard", "logs")
    assert end.value.code == 2
    assert "pip install tensorboard" in only_line(capsys)


def test_tensorboard_on_a_cluster_is_refused(parse, capsys, monkeypatch):
    for name in ("ray", "tensorboard"):
        monkeypatch.setitem(sys.modules, name, installed(name))
    with pytest.raises(SystemExit) as end:
        parse("--ray", "auto", "--tensorboard", "logs")
    assert end.value.code == 2
    assert "logs would stay on the machines" in only_line(capsys)


@pytest.mark.parametrize(
    "option, what",
    [("--keep-state", "states"), ("--share-stage-1", "ends of stage 1")],
)
def test_states_on_a_cluster_are_refused(
    option, what, parse, capsys, monkeypatch
):
    monkeypatch.setitem(sys.modules, "ray", installed("ray"))
    with pytest.raises(SystemExit) as end:
        parse("--ray", "auto", option)
    assert end.value.code == 2
    assert f"{what} would stay on the machines" in only_line(capsys)


def test_ray_that_is_not_installed_is_named(parse, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SystemExit) as end:
        parse("--ray", "auto")
    assert end.value.code == 2
    assert only_line(capsys) == (
        "--ray needs the package ray, which is not installed: pip install "
        "'gar_keras[ray]'"
    )


def test_an_address_is_taken_as_it_is(parse, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", installed("ray"))
    assert parse("--ray", "ray://host:10001").ray == "ray://host:10001"


def installed(name):
    """A module as `importlib.util.find_spec` knows it."""
    module = types.ModuleType(name)
    module.__spec__ = importlib.util.spec_from_loader(name, None)
    return module


def test_a_backend_that_is_not_installed_is_named(capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "keras", raising=False)
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(SystemExit) as end:
        cli.choose_backend("jax")
    assert end.value.code == 2
    assert "pip install jax" in only_line(capsys)


def test_the_backend_is_not_changed_once_keras_is_loaded(monkeypatch):
    monkeypatch.setitem(sys.modules, "keras", types.ModuleType("keras"))
    with pytest.raises(RuntimeError, match="before keras is loaded"):
        cli.choose_backend("tensorflow")


def test_help_tells_of_every_option(parse, capsys):
    with pytest.raises(SystemExit) as end:
        parse("--help")
    assert end.value.code == 0
    text = capsys.readouterr().out
    assert all(option in text for option in OPTIONS.split(", "))


def test_an_error_of_several_lines_becomes_one(capsys):
    with pytest.raises(SystemExit):
        cli.fail(ValueError("first\n   second"))
    assert only_line(capsys) == "first second"


# Seeds.


@given(st.lists(st.integers(0, cli.MAX_SEED), min_size=1, max_size=20))
def test_listed_seeds_are_read_back(seeds):
    assert runs.parse_seeds(",".join(map(str, seeds))) == seeds


@given(st.integers(0, cli.MAX_SEED - 100), st.integers(0, 100))
def test_a_range_holds_both_ends(first, more):
    seeds = runs.parse_seeds(f"{first}-{first + more}")
    assert seeds == [*range(first, first + more + 1)]


@given(st.text(max_size=8))
def test_any_text_is_seeds_or_refused(text):
    try:
        seeds = runs.parse_seeds(text)
    except ValueError as error:
        assert "--seeds takes" in str(error)
    else:
        assert seeds and all(0 <= seed <= cli.MAX_SEED for seed in seeds)


# What the options do.


def test_options_take_the_place_of_settings(parse):
    options = parse(
        *["--epochs", "3", "--pretrain-epochs", "20", "--frobenius-of", "Z"],
        *["--precision", "bfloat16", "--backend", "jax"],
    )
    changed = options.apply(SETTINGS[600])
    assert changed.num_labeled == 600
    assert (changed.epochs, changed.pretrain_epochs) == (3, 20)
    assert changed.frobenius_of == "Z"
    assert (changed.precision, changed.backend) == ("bfloat16", "jax")


def test_a_method_keeps_the_settings_that_it_has_no_part_in(parse):
    options = parse("--epochs", "3", "--frobenius-of", "Z")
    vat = options.apply(replace(SETTINGS[100], method="vat"))
    assert (vat.epochs, vat.frobenius_of) == (3, "B")
    graph = options.apply(replace(SETTINGS[100], method="hagr"))
    assert (graph.epochs, graph.frobenius_of) == (200, "B")


def test_without_options_the_settings_are_the_paper_s(parse):
    options = parse("--precision", "float32", "--backend", "tensorflow")
    assert options.apply(SETTINGS[100]) == SETTINGS[100]


@pytest.mark.parametrize("fast", ["float32", "bfloat16"])
def test_the_precision_is_what_the_hardware_is_made_for(
    fast, parse, monkeypatch
):
    monkeypatch.setattr(
        "gar_keras.engine.hardware.fast_precision", lambda: fast
    )
    assert parse().apply(SETTINGS[100]).precision == fast


@pytest.fixture
def run(parse, monkeypatch):
    """Runs the table with a sweep of one's own; gives what it was called with.

    The sweep's answer is returned, or raised if it is an error.
    """
    calls = []
    monkeypatch.setattr(cli, "choose_backend", lambda name: None)
    monkeypatch.setattr(report, "show_table", lambda *args: calls.append(args))

    def run(answer, *arguments):
        def sweep(*args, **options):
            calls.append((args, options))
            if isinstance(answer, BaseException):
                raise answer
            return answer

        monkeypatch.setattr(sweep_module, "sweep", sweep)
        options = parse(*arguments)
        experiments = options.experiments
        return runs.run_table(
            options, experiments, partial(report.show_table, TABLE_1)
        ), calls

    return run


def test_the_sweep_gets_the_options(run, tmp_path):
    status, (called, shown) = run(
        ([{"seed": 0}], True),
        *["--labels", "600", "--seeds", "1,4", "--epochs", "2"],
        *["--results", str(tmp_path), "--time-limit", "9", "--save-models"],
        *["--data-dir", str(tmp_path)],
    )
    assert status == 0
    (experiments, seeds, results, of_runs), options = called
    assert [(e.num_labeled, e.epochs) for e in experiments] == [(600, 2)]
    assert (seeds, results) == ([1, 4], tmp_path)
    assert of_runs == RunnerOptions(data_dir=tmp_path, save_models=True)
    del options["started"]
    assert options == {"time_limit": 9, "jobs": 1, "ray": None}
    assert shown == (TABLE_1, [{"seed": 0}], tmp_path)


def test_the_start_of_keras_counts_for_the_time_limit(
    run, tmp_path, monkeypatch
):
    now = [5.0]
    monkeypatch.setattr(runs.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(runs, "load_keras", lambda: now.append(now.pop() + 4))
    answer = [{"seed": 0}], True
    _, ((_, options), _) = run(answer, "--results", str(tmp_path))
    assert (options["started"], now) == (5.0, [9.0])


@pytest.mark.parametrize(
    ("arguments", "jobs", "ray"),
    [([], 1, None), (["--jobs", "3"], 3, None), (["--ray", "auto"], 1, "auto")],
)
def test_runs_side_by_side_share_a_gpu(arguments, jobs, ray, run, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", installed("ray"))
    shared = []
    monkeypatch.setattr(runs.resources, "share_gpu", lambda: shared.append(1))
    status, ((_, options), _) = run(([{"seed": 0}], True), *arguments)
    assert status == 0
    assert (options["jobs"], options["ray"]) == (jobs, ray)
    assert len(shared) == (jobs > 1 or ray is not None)


def test_an_unfinished_sweep_ends_with_124(run):
    assert run(([{"seed": 0}], False))[0] == cli.EXIT_TIME == 124


def test_a_backend_that_is_not_there_leaves_no_folder(
    parse, tmp_path, monkeypatch
):
    monkeypatch.delitem(sys.modules, "keras", raising=False)
    monkeypatch.setitem(sys.modules, "jax", None)
    results = tmp_path / "results"
    options = parse("--backend", "jax", "--results", str(results))
    with pytest.raises(SystemExit):
        runs.run_table(options, [], None)
    assert not results.exists()


def test_a_benchmark_of_nothing_leaves_no_folder(tmp_path, monkeypatch, capsys):
    def prepare(options):
        raise ValueError("There is no such path.")

    monkeypatch.setattr(cli, "choose_backend", lambda name: None)
    monkeypatch.setattr(runs.resources, "share_gpu", lambda: None)
    options = command.Options(results=tmp_path / "results")
    with pytest.raises(SystemExit) as end:
        command.run(options, "benchmark", prepare)
    assert end.value.code == 2
    assert only_line(capsys) == "There is no such path."
    assert not options.results.exists()


def test_what_ends_a_script_is_said_in_one_line(capsys):
    def main(error):
        raise error

    for error in (DataError("bad"), OSError("bad"), ImportError("bad")):
        with pytest.raises(SystemExit) as end:
            cli.run(main, error)
        assert end.value.code == 2
        assert only_line(capsys) == "bad"
    assert cli.run(main, KeyboardInterrupt()) == 130
    assert capsys.readouterr().err == "interrupted\n"
    assert cli.run(print, "done") == 0


def test_no_record_shows_no_table(run):
    status, calls = run(([], False))
    assert status == 124
    assert len(calls) == 1


def test_ctrl_c_says_how_to_go_on(run, capsys):
    status, _ = run(KeyboardInterrupt())
    assert status == cli.EXIT_INTERRUPTED == 130
    output, errors = capsys.readouterr()
    assert output == ""
    assert errors == (
        "interrupted: the same command goes on from the last finished epoch\n"
    )


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (DataError("No MNIST file."), "No MNIST file."),
        (RecordError("a.json is no record."), "a.json is no record."),
        (FloatingPointError("The loss became nan"), "The loss became nan"),
        (ImportError("Run pip install scipy."), "Run pip install scipy."),
        (WorkerError("Its process ended."), "Its process ended."),
        (
            OSError(errno.ENOSPC, "No space left on device"),
            "No space left on device. Make room, or choose another folder "
            "with --results. The same command goes on with what is saved.",
        ),
        (
            PermissionError(errno.EROFS, "Read-only file system", "results"),
            "Read-only file system. Received: results. Make room, or choose "
            "another folder with --results. The same command goes on with "
            "what is saved.",
        ),
    ],
)
def test_what_ends_a_sweep_is_said_in_one_line(error, message, run, capsys):
    with pytest.raises(SystemExit) as end:
        run(error)
    assert end.value.code == 2
    assert only_line(capsys) == message


def test_an_error_of_the_program_is_not_hidden(run):
    with pytest.raises(KeyError):
        run(KeyError("a defect"))
