"""Command-line options of the scripts of the figures."""

from dataclasses import dataclass, field

from gar_keras.experiments import folders, records
from gar_keras.report import plots
from gar_keras.utils import cli


@dataclass(frozen=True)
class Options:
    """Options of a script that draws a figure of a run."""

    results: cli.Folder = field(default_factory=folders.own)
    """Folder of the run records."""
    record: cli.File = None
    """Record of the run to draw. By default the longest run of MNIST with 100
    labels, of the lowest seed; where the folder has none, the reference's."""
    output: cli.File = None
    """PNG to write. By default that of the figure's name in the results
    folder."""

    def __post_init__(self):
        cli.check_output("--output", self.output)

    @property
    def path(self):
        """The path of the record of the run to draw."""
        return self.record or plots.choose_run(
            self.results, folders.reference()
        )


def draw(name, figure, beside=None):
    """A function of `Options` that draws a figure, and says what it wrote.

    Args:
        name: Name of the PNG.
        figure: Function of the run that returns a Matplotlib figure.
        beside: Function of the run and the path of its record that returns
            what to write as JSON beside the PNG, or `None`.
    """

    def main(options):
        path = options.path
        run = plots.load_run(path)
        output = options.output or options.results / name
        plots.save(figure(run), output)
        print(f"{run.title}\nWritten: {output}")
        if beside is not None:
            numbers = output.with_suffix(".json")
            records.write(numbers, beside(run, path))
            print(f"Written: {numbers}")

    return main
