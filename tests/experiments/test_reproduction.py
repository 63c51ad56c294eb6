"""The plan for a device that is there for a while."""

import runpy
import sys
from dataclasses import replace

import pytest
from made_records import write_record

from gar_keras.experiments import reproduction
from gar_keras.experiments.reproduction import Step
from gar_keras.experiments.settings import GRAPH_RIVALS, TABLE_1
from gar_keras.experiments.studies import STUDIES
from gar_keras.utils import cli

STEPS = reproduction.plan(reproduction.TABLE_3_DATA)


@pytest.fixture
def options(tmp_path):
    script = runpy.run_path(str(reproduction.SCRIPTS / "reproduce.py"))
    return script["Options"](backend="jax", results=tmp_path)


def parsed(words, monkeypatch):
    """What the script of a command makes of it."""
    monkeypatch.setattr(sys, "argv", words)
    return cli.parse(runpy.run_path(words[0])["Options"])


def experiments_of(options):
    if hasattr(options, "study"):
        return STUDIES[options.study].experiments
    return options.experiments


@pytest.mark.parametrize("step", STEPS, ids=[step.name for step in STEPS])
def test_a_step_counts_what_its_command_runs(step, options, monkeypatch):
    found = parsed(reproduction.arguments(step, options, 60), monkeypatch)
    assert (found.backend, found.time_limit) == ("jax", 60)
    assert found.results == options.results
    if step.seeds:
        assert found.seeds == step.seeds
        assert {*step.experiments()} == {*experiments_of(found)}


def test_only_data_that_are_not_in_the_package_are_looked_for(options):
    # With --data-dir, MNIST would be looked for there as well.
    options = replace(options, data_dir=options.results)
    assert {
        step.name
        for step in STEPS
        if "--data-dir" in reproduction.arguments(step, options)
    } == {*(f"table3-{d}" for d in reproduction.TABLE_3_DATA), "study-norb"}


def test_a_study_waits_for_its_data():
    names = [step.name for step in reproduction.plan()]
    assert "study-infimnist" in names and "study-norb" not in names
    names = [step.name for step in reproduction.plan(["norb-jpeg"])]
    assert "study-norb" in names


def test_tiny_runs_are_what_the_tiny_commands_run(options, monkeypatch):
    tiny = replace(options, tiny=True)
    step = next(step for step in STEPS if step.name == "table1")
    found = parsed(reproduction.arguments(step, tiny), monkeypatch)
    found = replace(found, precision="float32", backend="tensorflow")
    assert found.seeds == "0"
    expected = [found.apply(e) for e in found.experiments]
    assert step.experiments(**reproduction.tiny(step)) == expected
    assert {e.images_per_epoch for e in expected} == {256}


def test_one_cell_comes_before_the_rest_and_all_of_it_trains_networks():
    assert [step.name for step in STEPS[:3]] == [
        "speed",
        "table1-100",
        "table1",
    ]
    assert {e.num_labeled for e in STEPS[1].experiments()} == {100}
    of_graphs = {*GRAPH_RIVALS}
    assert not any(
        e.method in of_graphs for s in STEPS for e in s.experiments()
    )


def steps(count):
    return [Step(f"step {i}", "benchmark.py") for i in range(count)]


def test_a_step_gets_the_time_that_is_left(options, monkeypatch):
    now, limits = [0.0], []
    monkeypatch.setattr(reproduction.time, "monotonic", lambda: now[0])

    def call(words):
        limits.append(words[words.index("--time-limit") + 1])
        now[0] += 10
        return 0

    options = replace(options, time_limit=100.0)
    assert reproduction.run(steps(3), options, call) == 0
    assert limits == ["100", "90", "80"]
    now[0], limits[:] = 0.0, []
    options = replace(options, time_limit=15.0)
    assert reproduction.run(steps(3), options, call) == cli.EXIT_TIME
    assert limits == ["15", "5"]


def test_the_plan_names_no_time_that_is_not_known(options, capsys):
    options = replace(options, time_limit=100.0, dry_run=True)
    assert reproduction.run(steps(2), options) == 0
    said = capsys.readouterr().out
    assert "step 1: python " in said and "--time-limit" not in said


@pytest.mark.parametrize(
    ("statuses", "answer"),
    [([0, 124, 0], 124), ([0, 2, 124], 1), ([130], 130)],
)
def test_a_step_that_fails_does_not_stop_the_next(statuses, answer, options):
    left = [*statuses]
    call = lambda words: left.pop(0)  # noqa: E731
    assert reproduction.run(steps(3), options, call) == answer
    assert not left


def test_what_is_finished_is_skipped(options, capsys):
    made = replace(TABLE_1[100], backend="jax", precision="bfloat16", epochs=2)
    step = Step(
        "one",
        "table1.py",
        seeds="0-1",
        experiments=lambda: [replace(made, precision="float32")],
    )
    write_record(options.results, made, seed=0)
    calls = []
    assert reproduction.run([step], replace(options, dry_run=True)) == 0
    assert "one, 1 of 2 runs finished: python " in capsys.readouterr().out
    # The same runs on another backend are others.
    write_record(options.results, replace(made, backend="tensorflow"), seed=1)
    assert reproduction.progress(step, options) == (1, 2)
    write_record(options.results, made, seed=1)
    assert reproduction.run([step], options, calls.append) == 0
    assert not calls
