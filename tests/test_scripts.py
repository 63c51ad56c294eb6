"""The scripts as a user runs them: in processes of their own."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from made_records import make_record, write_record

from gar_keras import report
from gar_keras.experiments import placement, records
from gar_keras.experiments.run import labeled_of, learned_from
from gar_keras.experiments.settings import TABLE_1
from gar_keras.report.published import TABLE_1 as TABLE
from gar_keras.report.tables import paper_markdown

ROOT = Path(__file__).parents[1]
MNIST_100 = replace(TABLE_1[100], epochs=3)

# Scripts one after another in one process: how each ends, and what it says.
ONE_BY_ONE = """
import contextlib, io, json, runpy, sys

def end(command):
    sys.argv = command
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            runpy.run_path(command[0], run_name="__main__")
        except SystemExit as e:
            code = e.code or 0
    return code, out.getvalue(), err.getvalue()

print(json.dumps([end(command) for command in json.loads(sys.argv[1])]))
"""


def run(script, *arguments, **environment):
    """Runs a script of the repository and returns what came of it."""
    return subprocess.run(
        [sys.executable, ROOT / "scripts" / script, *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


TABLES = ["table1.py", "table2.py", "table3.py", "rivals.py", "study.py"]
BENCHMARKS = ["benchmark.py", "overhead.py"]
DRAWINGS = ["figure1.py", "figure2.py", "infimnist_sheet.py"]
OTHERS = ["report.py", "reproduce.py"]
SCRIPTS = [*TABLES, *BENCHMARKS, *DRAWINGS, *OTHERS]


def test_these_are_all_the_scripts():
    assert {path.name for path in (ROOT / "scripts").glob("*.py")} == {*SCRIPTS}


# For some wrong command lines, what the error says.
REFUSED = {
    **{(s, "--foo"): "--foo" for s in SCRIPTS},
    ("rivals.py", "--rate", "nan"): "--rate must be a finite number",
    ("rivals.py", "--method", "label-spreading", "--rate", "0.1"): (
        "label-spreading train none"
    ),
    ("study.py", "--study", "ablation", "--rows", "1,99"): (
        "--rows takes numbers from 1 to 16, the rows of the study ablation. "
        "Received: '1,99'. They are: 1 the paper's stage 2; 2 m_L = 1000"
    ),
    ("figure1.py", "--output", "x.json"): "--output takes the name of a",
    ("infimnist_sheet.py", "--data-dir", "gone"): "--data-dir takes a",
    ("report.py", "--results", "gone"): "no run records in gone. A first one: ",
    ("report.py", "--readme", "gone.md"): "--readme takes a file that is there",
    ("report.py", "--tables", "table9"): "table9",
}


@pytest.fixture(scope="module")
def ends():
    """How command lines end that need no run, all from one process."""
    commands = [*((script, "--help") for script in SCRIPTS), *REFUSED]
    paths = [[str(ROOT / "scripts" / s), *words] for s, *words in commands]
    done = subprocess.run(
        [sys.executable, "-c", ONE_BY_ONE, json.dumps(paths)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(commands, json.loads(done.stdout), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS)
def test_help_tells_of_a_folder(script, ends):
    code, output, errors = ends[script, "--help"]
    assert code == 0
    assert " DIR " in output
    assert errors == ""


@pytest.mark.slow
@pytest.mark.parametrize("command", REFUSED, ids=" ".join)
def test_what_is_wrong_is_told(command, ends):
    code, output, errors = ends[command]
    assert code == 2
    # Without the frame of the box, and its line breaks.
    assert REFUSED[command] in " ".join(errors.replace("│", "").split())
    assert output == ""


@pytest.mark.slow
def test_a_run_out_of_time_ends_with_124_and_can_go_on(tmp_path):
    done = run(
        "table1.py",
        *["--labels", "100", "--seeds", "0", "--epochs", "1"],
        *["--pretrain-epochs", "1", "--time-limit", "0.001"],
        *["--results", tmp_path],
    )
    assert done.returncode == 124, done.stderr
    assert done.stdout == (
        "Time limit of 0.001 s reached. The same command goes on from the last "
        "finished epoch.\n"
    )
    assert "Traceback" not in done.stderr
    (folder,) = tmp_path.iterdir()
    assert folder.name == ".checkpoints"
    assert [path.suffix for path in folder.iterdir()] == [".lock"]


@pytest.mark.slow
def test_a_benchmark_out_of_time_ends_with_124(tmp_path):
    done = run(
        "benchmark.py",
        *["--all", "--time-limit", "0.001", "--results", tmp_path],
    )
    assert done.returncode == 124, done.stderr
    assert done.stdout == (
        "Time limit of 0.001 s reached. The same command goes on after the "
        "last finished case.\n"
    )
    assert "Traceback" not in done.stderr
    assert not [*tmp_path.glob("*.json")]


@pytest.fixture
def results(tmp_path):
    """A folder of records, with a name that `rich` would alter."""
    folder = tmp_path / "a[/x]b[red]:warning:"
    for seed in (0, 1, 2):
        path = write_record(folder, MNIST_100, seed)
        record = records.read(path)
        record["environment"]["device"] = "Some [/GPU]"
        # Of another split it would not be taken for the run's.
        task, _, made_from = learned_from(MNIST_100, seed)
        record |= {**made_from, "labeled": labeled_of(task)}
        records.write(path, record)
    return folder


@pytest.mark.slow
def test_finished_runs_end_with_the_table(results):
    # Without --precision auto, which is another run on other hardware.
    done = run(
        "table1.py",
        *["--labels", "100", "--seeds", "0-2", "--epochs", "3"],
        *["--precision", "float32", "--results", results],
        KERAS_BACKEND="tensorflow",
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"mnist-100 seed 0 is finished: {results}")
    assert "Table 1: test error on MNIST, in percent" in done.stdout
    assert "1.56 ± 0.09" in done.stdout and "(n = 3)" in done.stdout
    assert lines[-1] == f"Written: {results / 'table1.png'}"
    assert not {"\r", "\x1b"} & set(done.stdout)


@pytest.mark.slow
def test_the_report_makes_tables_curves_and_the_readme(results):
    readme = results / "README.md"
    readme.write_text("<!-- table1 -->\n<!-- end table1 -->\n")
    done = run("report.py", "--results", results, "--readme", readme)
    assert done.returncode == 0, done.stderr
    assert "2.00 ± 0.00" in done.stdout and "(n = 3)" in done.stdout
    text = paper_markdown(TABLE, report.read_runs(results))
    assert text.replace("](", "](./") in readme.read_text(encoding="utf-8")
    assert (results / "table1.png").read_bytes().startswith(b"\x89PNG")
    assert not (results / "table2.png").exists()


@pytest.mark.slow
def test_a_figure_is_followed_to_its_records(results):
    done = run("report.py", "--results", results, "--find", "2.00")
    assert done.returncode == 0, done.stderr
    folder = placement.path_of(MNIST_100, 0, "").parent.as_posix()
    assert f"{folder}: chosen 2.00, mean" in done.stdout
    done = run("report.py", "--results", results, "--find", "77.77")
    assert done.returncode == 2
    assert "\nerror: no error of the runs, " in done.stderr


@pytest.mark.slow
def test_a_report_refuses_what_is_no_record(results):
    path = placement.path_of(MNIST_100, 7, results)
    record = {**make_record(MNIST_100, 7), "result": None}
    path.write_text(json.dumps(record))
    done = run("report.py", "--results", results)
    assert done.returncode == 2
    # Behind the notes of TensorFlow.
    assert done.stderr.splitlines()[-1].startswith(
        f"error: {path} is not a whole record"
    )
