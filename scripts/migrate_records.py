"""Records of runs as commit 335e523 wrote them, in the form of today.

    python scripts/migrate_records.py results/new --results results

reads each `seedN.json`, with its arrays, in the folders given and below them,
and writes both anew where they belong in a results folder, which can be the
same. What the reader of that commit guessed is written out: whether a class was
lost, the errors with classes counted alike, the settings of the method.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from gar_keras.regularizers import expected_balance
from reproduction import records
from reproduction.methods import METHODS, terms
from reproduction.settings import SAFE, DataSettings, Experiment

# Data sets of ten classes.
_DIGITS = ("mnist", "svhn", "svhn-grey")

# The runs behind figures 1 and 2 and the pair of graphs.
LOGITS_OF = (
    "mnist-100/2000+100_bfloat16_61482226/seed0",
    "mnist-100/2000+200_bfloat16_bc207fca/seed0",
    "mnist-100/2000+200_bfloat16_jax_85658353/seed0",
)

# What no record has that is still wanted, and what all have in common.
GONE = {
    "batch_size": 128,
    "learning_rate": 0.01,
    "momentum": 0.95,
    "decay": 1e-6,
    "camera_stretch": False,
    "field_strength": 1.0,
    "pretrain_shift": 0,
    "pretrain_affine": 0.0,
}
GONE_EXTENSIONS = {
    "shift": 0,
    "affine": 0.0,
    "consistency": 0.0,
    "vat": 0.0,
    "average": 0.0,
    "vat_radius": 2.5,
    "rate": "inverse-time",
    "affinity_warmup": 0,
}
COEFFICIENTS = ("affinity", "balance", "frobenius")


def experiment_of(old, found, protects):
    """The `Experiment` of a record.

    Args:
        old: Its settings, a dict that is used up.
        found: Its `method_settings`.
        protects: Whether `SafeGAR` protects rare classes.
    """
    name = old.pop("method", "gar")
    extensions = old.pop("extensions", {})
    world = old.pop("world", {})
    for settings, gone in ((old, GONE), (extensions, GONE_EXTENSIONS)):
        for key, usual in gone.items():
            value = settings.pop(key, usual)
            if value != usual:
                raise ValueError(f"there is no {key}={value!r} any more")
    if world.get("shares") is not None:
        world["shares"] = tuple(world["shares"])
    world["out_of_class"] = world.pop("strangers", 0.0)
    gar = {key: old.pop(key) for key in COEFFICIENTS}
    prior = old.pop("class_prior", None)
    gar |= {
        "frobenius_of": old.pop("frobenius_of", "B"),
        "balance_of": old.pop("balance_of", "diagonal"),
        "class_prior": tuple(prior) if isinstance(prior, list) else prior,
    }
    ablation = old.pop("ablation", None)
    old.pop("protects_rare_classes", None)
    steps = {k: extensions.pop(k, 0) for k in ("warmup_steps",)}
    steps["global_clipnorm"] = extensions.pop("global_clipnorm", 0.0)
    supervised = extensions.pop("supervised", 0.0)
    if extensions:
        raise ValueError(f"there are no extensions {extensions} any more")
    if name == "gar":
        kind = terms.ABLATIONS.get(ablation, terms.GAR)
        method = (kind(**gar),)
        if supervised:
            method += (terms.CrossEntropy(supervised),)
    else:
        method = terms_of(name, found, protects)
        steps |= dict(METHODS[name].steps)
    return Experiment(
        **old, **steps, data_settings=DataSettings(**world), method=method
    )


def terms_of(name, found, protects):
    """The terms of a method but GAR, by its settings in a record."""
    found = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in found.items()
    }
    if name == SAFE:
        keys = (*COEFFICIENTS, "class_prior", "top_logit")
        safe = {key: found[key] for key in keys}
        return (
            terms.SafeGAR(**safe, protects_rare_classes=protects),
            terms.CrossEntropy(found["supervised"]),
        )
    if not METHODS[name].network:
        return (type(METHODS[name].terms[0])(**found),)
    entropy = found.pop("entropy", 0.0)
    method = [type(term)() for term in METHODS[name].terms[:2]]
    if found:
        method[1] = type(method[1])(**found)
    if entropy:
        method.append(terms.Entropy(entropy, of_labeled=True))
    return tuple(method)


def dead_outputs(batches):
    """The classes without energy in some batch, by the energies of each."""
    return {
        j
        for v in batches
        for j, energy in enumerate(v)
        if energy <= 1e-3 * sum(v) / len(v)
    }


def lost_classes(old, e, arrays):
    """`lost_classes` of a record, as its reader told it."""
    if "lost_classes" in old:
        return old["lost_classes"]
    # Earlier versions did not note it.
    if old.get("first_epoch"):
        return sorted(dead_outputs([old["first_epoch"]["v"][-1]]))
    if arrays is not None:
        return records.lost_of(arrays)
    curve = old["regularization"]["curve"]
    if e.dataset not in _DIGITS:
        return None
    n = e.data_settings.known_classes or 10
    baseline = old["result"]["baseline_error"]
    if baseline is None or baseline >= 1 - 1 / n:
        # No stage 1, or at chance after it: there was nothing to lose.
        return None
    if curve.get("classes_in_use"):
        return [None] if curve["classes_in_use"][-1] < n else []
    balance = curve.get("balance", ())
    uneven = e.data_settings.shares or e.class_prior
    unrectified = isinstance(e.method[0], terms.Unrectified)
    # The mean over the first epoch is also that of the way there; of
    # unrectified logits, outputs that get no image count as well.
    if len(balance) <= 2 or uneven or unrectified:
        return None
    m = e.labeled_per_batch + e.unlabeled_per_batch
    # Of n - 1 outputs used equally; n outputs have more pairs.
    limit = expected_balance(m, n - 1) * (n - 2) / (n - 1)
    return [None] if balance[-1] <= limit else []


def arrays_of(path, old, with_logits):
    """The `Arrays` beside a record; `None` without the file."""
    file = path.with_suffix(".npz")
    if not file.exists():
        return None
    with np.load(file) as found:
        epochs = sorted(old["snapshot_epochs"])
        logits = {epoch: found[f"epoch_{epoch}"] for epoch in epochs}
        predicted = {epoch: Z.argmax(axis=1) for epoch, Z in logits.items()}
        indices = found["indices"]
        return records.Arrays(
            indices,
            found["labels"],
            predicted,
            indices,
            logits if with_logits else {},
        )


def migrated(path, old, protects):
    """The record of today, and its `Arrays`."""
    place = f"{old['cell']}/{path.parent.name}/{path.name}"
    if not path.parent.name.endswith(old["fingerprint"]):
        raise ValueError(f"it is not of {old['fingerprint']}")
    found = old.get("method_settings", {})
    e = experiment_of(dict(old["experiment"]), found, protects)
    arrays = arrays_of(path, old, place.removesuffix(".json") in LOGITS_OF)
    first = old.get("first_epoch")
    record = {
        "format": records.FORMAT,
        "path": place,
        "fingerprint": e.fingerprint(),
        "experiment": e.as_json(),
        "seed": old["seed"],
        "labeled": old["labeled"],
        "split_fingerprint": old["split_fingerprint"],
        # The first records do not say where X_U is from.
        "data": {"unlabeled": "all training images"} | old["data"],
        "class_prior": old.get("class_prior"),
        "predicted_prior": old.get("predicted_prior"),
        "environment": old["environment"],
        "resumed_in": old.get("resumed_in", []),
        "warnings": old.get("warnings"),
        "pretraining": old["pretraining"],
        "regularization": old["regularization"],
        "lost_classes": lost_classes(old, e, arrays),
        "dead_outputs": sorted(dead_outputs(first["v"])) if first else None,
        "balanced_errors": None,
        "snapshot_epochs": sorted(old["snapshot_epochs"]),
    }
    if arrays is not None:
        record["balanced_errors"] = records.balanced_errors_of(arrays)
    return record, arrays


def main(folders, results):
    """Writes each record anew; the number of those that were not."""
    count = failed = 0
    for folder in sorted({p.parent for f in folders for p in files_in(f)}):
        olds = {p: json.loads(p.read_text("utf-8")) for p in files_in(folder)}
        # With equal shares no class is rare: runs from before there was a
        # protection are as those of today.
        equal = not any(old.get("predicted_prior") for old in olds.values())
        for path, old in olds.items():
            if old["format"] == records.FORMAT:
                continue
            protects = old["experiment"].get("protects_rare_classes", False)
            try:
                record, arrays = migrated(path, old, protects or equal)
            except (ValueError, TypeError, KeyError) as e:
                print(f"{path} is left as it is: {e}", file=sys.stderr)
                failed += 1
                continue
            place = Path(results, record["path"])
            if arrays is not None:
                owner = record["fingerprint"], record["seed"]
                records.write_arrays(place.with_suffix(".npz"), owner, arrays)
            records.write(place, record)
            count += 1
    print(f"Written: {count} records in {results}. Left: {failed}")
    return failed


def files_in(folder):
    """The records in a folder and below it, by seed."""
    found = Path(folder).rglob("seed*.json")
    return sorted(found, key=lambda path: (len(path.name), path.name))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    parser.add_argument("--results", required=True, metavar="DIR")
    options = parser.parse_args()
    sys.exit(1 if main(**vars(options)) else 0)
