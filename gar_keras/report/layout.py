"""Layout of tables, as Markdown and in a terminal."""

from rich.table import Table

# In a cell without a figure.
MISSING = "-"


class Linked(str):
    """A text of a table, with links to what it was made from.

    The links are in Markdown alone.

    Args:
        text: The text.
        targets: Where the links lead.

    Example:

    >>> print(*markdown_table(["error"], [[Linked("1.56", ["a.json"])]])[2:])
    | [1.56](a.json) |
    >>> Linked("1.56", ["a.json"]) == "1.56"
    True
    """

    def __new__(cls, text, targets=()):
        self = super().__new__(cls, text)
        self.targets = tuple(targets)
        return self

    @property
    def markdown(self):
        """The text as the link, or with links behind it if there are more."""
        if len(self.targets) < 2:
            return "".join(f"[{self}]({target})" for target in self.targets)
        numbered = (f"[{i}]({t})" for i, t in enumerate(self.targets, start=1))
        return f"{self} ({', '.join(numbered)})"


def in_markdown(cell):
    """A cell of a table as Markdown."""
    return getattr(cell, "markdown", "") or cell


def markdown_table(heading, rows, rules=None):
    """Lines of a table in Markdown.

    Args:
        heading: Texts above the columns.
        rows: Lists of texts, one for each column.
        rules: What stands below the headings, e.g. `"---:"` for a column
            whose cells go to the right. `"---"` for all by default.

    Returns:
        A list of strings.

    Example:

    >>> print(*markdown_table(["", "error"], [["GAR", "1.56"]]), sep="\\n")
    |  | error |
    | --- | --- |
    | GAR | 1.56 |
    """
    rules = rules or ["---"] * len(heading)
    lines = [heading, rules, *rows]
    return [f"| {' | '.join(map(in_markdown, cells))} |" for cells in lines]


def numbers(heading, rows):
    """The lines of a Markdown table with names first and figures behind."""
    rules = ["---", *("---:" for _ in heading[1:])]
    return markdown_table(heading, rows, rules)


def terminal_table(title, heading, rows, **first):
    """A table for the terminal, likewise.

    Args:
        title: Its title.
        heading: Texts above the columns.
        rows: Lists of texts, one for each column.
        **first: Options of `rich` for the column of the names.
    """
    table = Table(title=title)
    for name in heading:
        if name:
            table.add_column(name, justify="right")
        else:
            table.add_column(name, **first)
    for row in rows:
        table.add_row(*map(narrow, row))
    return table


def narrow(cell):
    """A cell with n below its figure, which keeps a table within a terminal.

    Example:

    >>> narrow("2.00 ± 1.00 (n = 3)")
    '2.00 ± 1.00\\n(n = 3)'
    """
    return cell.replace(" (n =", "\n(n =")
