"""Tables in the README and the pages of docs, between their markers."""

from pathlib import Path

from gar_keras.experiments import records as record_files
from gar_keras.report.parts import PARTS
from gar_keras.report.sources import with_links_from


def pages(readme):
    """A README, and the pages of the folder `docs` beside it.

    Args:
        readme: Path of the README.

    Returns:
        A list of paths.
    """
    readme = Path(readme)
    return [readme, *sorted((readme.parent / "docs").glob("*.md"))]


def update_readme(readme, results):
    """README, or another page, with the parts of the report in their places.

    Each of `PARTS` goes between markers of its name, such as
    `<!-- table1 -->` and `<!-- end table1 -->`; one without markers is left
    out.

    Args:
        readme: Path of the page.
        results: Folder of the records.

    Returns:
        The new text of the page.

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
        content = with_links_from(content, results, Path(readme).parent)
        text = f"{head}{begin}\n{content}{end}{tail}"
    return text
