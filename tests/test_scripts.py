"""The scripts as a user runs them: in processes of their own."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import fresh
import pytest
from made_records import write_record

from reproduction.settings import TABLE_1

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted(path.name for path in (ROOT / "scripts").glob("*.py"))
# A student's page, which begins with its imports.
WITH_KERAS = ("gar_in_one_file.py",)
MNIST_100 = replace(TABLE_1[100], epochs=3)

pytestmark = pytest.mark.slow

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

ends = [end(command) for command in json.loads(sys.argv[1])]
print(json.dumps([ends, [*sys.modules]]))
"""

# For some wrong command lines, what the error says.
REFUSED = {
    ("rivals.py", "--rate", "nan"): "invalid positive_number value: 'nan'",
    ("table3.py", "--data", "svhn", "--labels", "300"): "1000. Received: 300",
    ("reproduce.py", "--jobs", "0"): "invalid positive_integer value: '0'",
}


def run(script, *arguments, **environment):
    """Runs a script of the repository and returns what came of it."""
    return subprocess.run(
        [sys.executable, ROOT / "scripts" / script, *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


def test_help_and_refusals_come_without_keras():
    helps = [(s, "--help") for s in SCRIPTS if s not in WITH_KERAS]
    commands = [*helps, *REFUSED]
    paths = [[str(ROOT / "scripts" / s), *words] for s, *words in commands]
    process = fresh.start("-c", ONE_BY_ONE, json.dumps(paths), cwd=ROOT)
    printed, logged = process.communicate()
    assert (process.returncode, logged) == (0, "")
    ends, loaded = json.loads(printed)
    assert not {"keras", "tensorflow", "pandas", "scipy"} & {*loaded}
    ends = dict(zip(commands, ends, strict=True))
    for command, (code, output, errors) in ends.items():
        if command in REFUSED:
            assert (code, output) == (2, "")
            assert REFUSED[command] in " ".join(errors.split())
        else:
            assert (code, errors) == (0, ""), command
        if "--help" in command:
            # Where what it makes is written to.
            assert re.search(r" (DIR|FILE)\b", output), command


@pytest.fixture
def results(tmp_path):
    """A folder of records, with a name of odd characters."""
    folder = tmp_path / "a[/x]b[red]:warning:"
    for seed in (0, 1, 2):
        write_record(folder, MNIST_100, seed)
    return folder


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
    assert lines[1].startswith(f"mnist-100 seed 0 is finished: {results}")
    assert "1.56 ± 0.09" in done.stdout and "(n = 3)" in done.stdout
    assert lines[-1] == f"Written: {results / 'table1.png'}"


def test_the_report_writes_pages_and_refuses_what_is_no_record(results):
    readme = results.parent / "README.md"
    readme.write_text("<!-- table1 -->\n<!-- end table1 -->\n")
    done = run("report.py", "--results", results, "--readme", readme)
    assert done.returncode == 0, done.stderr
    # What was not run is not told.
    assert "Table 1" in done.stdout and "Table 2" not in done.stdout
    assert "2.00 ± 0.00 (n = 3)" in readme.read_text("utf-8")
    assert (results / "table1.png").read_bytes().startswith(b"\x89PNG")
    path = next(results.glob("*/*/seed0.json"))
    path.write_text(json.dumps({**json.loads(path.read_text()), "seed": 9}))
    done = run("report.py", "--results", results)
    assert done.returncode == 2
    # Behind the notes of TensorFlow.
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"error: {path} is not a whole record")
