"""Tables in the README, between their markers."""

from pathlib import Path

from gar_keras.experiments import records as record_files
from gar_keras.report.parts import PARTS


def update_readme(readme, results):
    """README with the parts of the report between their markers.

    Each of `PARTS` goes between markers of its name, such as
    `<!-- table1 -->` and `<!-- end table1 -->`; one without markers is left
    out.

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
    for part in PARTS:
        begin, end = f"<!-- {part.name} -->", f"<!-- end {part.name} -->"
        if begin not in text and end not in text:
            continue
        head, _, rest = text.partition(begin)
        _, found, tail = rest.partition(end)
        if not found or begin in rest or end in head + tail:
            raise ValueError(
                f"{readme} must hold {begin} and, below it, {end}, once each. "
                "Put the missing one in, or take the other one out."
            )
        content = part.markdown(everything, results) or part.absent
        text = f"{head}{begin}\n{content}{end}{tail}"
    return text
