"""Links from the figures of a report to the records behind them."""

import os
import re
from pathlib import Path

from gar_keras.experiments.placement import path_of_record
from gar_keras.report.layout import Linked


def linked(text, g, results=None, seen_from=None):
    """A text with a link to the records of a group.

    Args:
        text: The text.
        g: A `Group`, or `None` for no link.
        results: Folder of its records, or `None` for no link.
        seen_from: Folder that the link begins in; `results` by default.
    """
    if g is None or results is None:
        return text
    return Linked(text, links(g.records, results, seen_from))


def links(records, results, seen_from=None):
    """Links to records: to a folder, where they are all that is in it.

    Args:
        records: Run records.
        results: Folder of them.
        seen_from: Folder that the links begin in; `results` by default.

    Returns:
        A list of texts.
    """
    by_folder = {}
    for record in records:
        path = path_of_record(record, results)
        by_folder.setdefault(path.parent, []).append(path)
    found = []
    for folder, paths in by_folder.items():
        alone = {*folder.glob("*.json")} == {*paths}
        whole = len(paths) > 1 and alone and folder != Path(results)
        found += [folder] if whole else paths
    begin = results if seen_from is None else seen_from
    return [Path(os.path.relpath(path, begin)).as_posix() for path in found]


def with_links_from(text, results, seen_from):
    """Markdown whose links begin in a results folder, for another place.

    Args:
        text: Markdown.
        results: Folder that its links begin in.
        seen_from: Folder that they shall begin in.
    """
    way = Path(os.path.relpath(results, seen_from)).as_posix()
    if way == ".":
        return text
    # But for links to other sites.
    return re.sub(r"\]\((?!\w+:)", f"]({way}/", text)
