"""The console on which the programs print."""

from rich.console import Console


def console(**options):
    """A `rich` console that prints text as it is.

    A folder may be called `a[/b]` or `:x:`, which `rich` would take for markup
    and for an emoji.
    """
    return Console(
        highlight=False, soft_wrap=True, markup=False, emoji=False, **options
    )
