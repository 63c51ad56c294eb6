"""The tables in the README."""

from pathlib import Path

from gar_keras.experiments import records as record_files
from gar_keras.experiments.studies import STUDIES
from gar_keras.report import benchmarks as benchmarks
from gar_keras.report.comparison import compare
from gar_keras.report.confusion import confusions
from gar_keras.report.pairs import paired
from gar_keras.report.published import TABLES
from gar_keras.report.studies import study_markdown
from gar_keras.report.tables import markdown


def update_readme(readme, results):
    """Puts the tables between their markers in the README.

    A table goes between `<!-- table1 -->` and `<!-- end table1 -->`, the
    comparison of `paired` between markers of the setting's name, the largest
    confusions between markers of `confusions`, the comparison of the methods
    between `<!-- rivals -->` and `<!-- end rivals -->`, those of the benchmarks
    between markers of `benchmark` and `overhead`.

    Args:
        readme: Path of the README.
        results: Folder of the records.

    Returns:
        The new text of the README.

    Raises:
        ValueError: if a table's markers are not one pair.
    """
    everything = record_files.read_all(results)
    text = Path(readme).read_text(encoding="utf-8")
    parts = {t.name: markdown(t, everything, results) for t in TABLES.values()}
    for setting in ("precision", "frobenius_of"):
        parts[setting] = (
            paired(everything, setting, results) or "Not run yet.\n"
        )
    parts["confusions"] = confusions(everything, results) or "Not run yet.\n"
    for study in STUDIES.values():
        content = study_markdown(study, everything, results)
        parts[f"study {study.name}"] = content or (
            f"{study.title}: not run yet.\n"
        )
    parts["rivals"] = "\n".join(c.markdown() for c in compare(everything)) or (
        "Not run yet.\n"
    )
    parts["benchmark"] = benchmarks.speed(results)
    parts["overhead"] = benchmarks.overhead(results)
    for name, content in parts.items():
        begin, end = f"<!-- {name} -->", f"<!-- end {name} -->"
        if begin not in text and end not in text:
            continue
        head, _, rest = text.partition(begin)
        _, found, tail = rest.partition(end)
        if not found or begin in rest or end in head + tail:
            raise ValueError(
                f"{readme} must hold {begin} and, below it, {end}, once each. "
                "Put the missing one in, or take the other one out."
            )
        text = f"{head}{begin}\n{content}{end}{tail}"
    return text
