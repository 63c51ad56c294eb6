"""Tables in Markdown."""


def table(heading, rows, rules=None):
    """The lines of a table.

    Args:
        heading: Texts above the columns.
        rows: Lists of texts, one for each column.
        rules: What stands below the headings, e.g. `"---:"` for a column
            whose cells go to the right. `"---"` for all by default.

    Returns:
        A list of strings.

    Example:

    >>> print(*table(["", "error"], [["GAR", "1.56"]]), sep="\\n")
    |  | error |
    | --- | --- |
    | GAR | 1.56 |
    """
    rules = rules or ["---"] * len(heading)
    lines = [heading, rules, *rows]
    return [f"| {' | '.join(cells)} |" for cells in lines]
