"""Records of the form before, in the form of today."""

import json

import migrate_records
import numpy as np
import pytest
from made_records import make_record

from reproduction import records
from reproduction.methods import METHODS, terms
from reproduction.settings import TABLE_1, Experiment

COMMON = {
    "dataset": "mnist", "num_labeled": 100, "network": "cnn6", "filters": None,
    "preprocessing": "rescale", "labeled_per_batch": 16,
    "unlabeled_per_batch": 112, "pretrain_epochs": 2000, "epochs": 3,
    "affinity": 3.0, "balance": 1.0, "frobenius": 1e-6, "momentum": 0.95,
    "world": {"shares": None, "strangers": 0.0}, "precision": "bfloat16",
}  # fmt: skip
SAFE = {
    "affinity": 3.0, "balance": 1.0, "frobenius": 1e-6, "supervised": 1.0,
    "class_prior": "predicted", "top_logit": 10.0,
}  # fmt: skip


def write_old(folder, settings, **changes):
    """Writes a record as it was, below a folder, and returns its path."""
    new = make_record(TABLE_1[100].with_term())
    curve = new["regularization"]["curve"]
    old = {
        key: new[key]
        for key in ("seed", "labeled", "split_fingerprint", "data")
    }
    old |= {
        "format": 1,
        "cell": "mnist-100",
        "fingerprint": "0123abcd",
        "experiment": COMMON | settings,
        "environment": {"device": "A", "cores": 2},
        "pretraining": {"seconds": 1.0, "curve": {}},
        "regularization": {
            "seconds": 1.0,
            "curve": {name: values[:4] for name, values in curve.items()},
        },
        "result": {"baseline_error": 0.1},
        "snapshot_epochs": [0, 1, 3],
    } | changes
    path = folder / "2000+3_bfloat16_0123abcd" / "seed0.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(old))
    return path


def migrated(tmp_path):
    assert migrate_records.main([tmp_path / "old"], tmp_path / "new") == 0
    ((path, record),) = records.read_all(tmp_path / "new").items()
    return path, record, Experiment.from_json(record["experiment"])


GAR = terms.GAR


@pytest.mark.parametrize(
    ("settings", "found", "method"),
    [
        ({}, None, (GAR(),)),
        (
            {"balance_of": "column sums", "extensions": {"supervised": 1.0}},
            {},
            (GAR(balance_of="column sums"), terms.CrossEntropy()),
        ),
        ({"ablation": "symmetric"}, {}, (terms.Symmetric(),)),
        (
            {"method": "vat-entropy"},
            {"weight": 1.0, "epsilon": 2.5, "xi": 1.0, "iterations": 1,
             "entropy": 1.0},
            METHODS["vat-entropy"].terms,
        ),
        ({"method": "hagr"}, {"anchors": [5000, 500], "nearest": 3},
         METHODS["hagr"].terms),
        # With equal shares no class is rare.
        ({"method": "safe-gar"}, SAFE, METHODS["safe-gar"].terms),
    ],
)  # fmt: skip
def test_the_method_is_a_list_of_terms(settings, found, method, tmp_path):
    name = settings.get("method", "gar")
    changes = {} if found is None else {"method_settings": found}
    cell = "mnist-100" if name == "gar" else f"mnist-100-{name}"
    if name == "hagr":
        curve = {"epoch": [0, 1], "val_error": [None, 0.1]}
        curve["test_error"] = curve["val_error"]
        changes["regularization"] = {"seconds": 1.0, "curve": curve}
        changes["result"] = {"baseline_error": None}
    write_old(tmp_path / "old", settings, cell=cell, **changes)
    _, _, e = migrated(tmp_path)
    assert e.method == method and e.precision == "bfloat16"
    assert e.warmup_steps == (None if name == "safe-gar" else 0)


def test_what_was_guessed_is_written(tmp_path):
    first = {"v": [[1.0, 0.0, 1.0], [1.0, 1.0, 1.0]]}
    path = write_old(tmp_path / "old", {}, first_epoch=first)
    y = np.array([0, 1, 2, 2])
    logits = {f"epoch_{i}": np.eye(3)[y] for i in (0, 1)}
    logits["epoch_3"] = np.eye(3)[[0, 0, 2, 2]]
    # The energies come first, as they came.
    np.savez(path.with_suffix(".npz"), indices=[3, 1, 2, 0], labels=y, **logits)
    new, record, _ = migrated(tmp_path)
    assert (record["dead_outputs"], record["lost_classes"]) == ([1], [])
    assert record["balanced_errors"] == {"stage_1": 0.0, "last": 1 / 3}
    assert new.parent.name == path.parent.name


@pytest.mark.parametrize(("balance", "lost"), [(0.5, [None]), (0.95, [])])
def test_the_balance_tells_where_nothing_else_does(balance, lost, tmp_path):
    path = write_old(tmp_path / "old", {})
    old = json.loads(path.read_text())
    old["regularization"]["curve"]["balance"][-1] = balance
    path.write_text(json.dumps(old))
    assert migrated(tmp_path)[1]["lost_classes"] == lost


def test_what_is_no_setting_any_more_is_told(tmp_path, capsys):
    path = write_old(tmp_path / "old", {"extensions": {"average": 0.999}})
    assert migrate_records.main([tmp_path / "old"], tmp_path / "new") == 1
    told = capsys.readouterr().err
    assert told.startswith(f"{path} is left as it is: there is no average=")
