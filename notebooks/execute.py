"""Brings the executed notebooks up to date with their sources.

Each notebook is a pair: `NAME.py` is its source, to be edited, and `NAME.ipynb`
the same with its outputs. This makes the second from the first:

    python notebooks/execute.py [NAME ...]

without a name, for all of them.
"""

import base64
import io
import sys
from pathlib import Path

import jupytext
import nbclient
import nbformat
from PIL import Image

FOLDER = Path(__file__).parent
# TensorFlow warns of repeated compilation, with addresses in memory. A filter
# stays when it sets up its logger.
QUIET = (
    "import logging; logging.getLogger('tensorflow').addFilter("
    "lambda record: record.levelno >= logging.ERROR)"
)


def execute(source):
    """The notebook of a `.py` source, with fresh outputs."""
    notebook = jupytext.read(source)
    for number, cell in enumerate(notebook.cells):
        # Ids that a run does not change.
        cell.id = f"cell-{number}"
    client = nbclient.NotebookClient(
        notebook,
        timeout=None,
        kernel_name="python3",
        # Wall-clock times differ from run to run.
        record_timing=False,
        # So do the pieces in which a long text arrives.
        coalesce_streams=True,
        extra_arguments=[
            # What C libraries write does not belong to a cell.
            "--IPKernelApp.capture_fd_output=False",
            f"--IPKernelApp.exec_lines={QUIET}",
        ],
        resources={"metadata": {"path": str(FOLDER)}},
    )
    client.execute()
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if "image/png" in output.get("data", {}):
                output.data["image/png"] = shrink(output.data["image/png"])
    return notebook


def shrink(picture):
    """A PNG in base64, with 256 colours: a third of the size."""
    full = Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGB")
    file = io.BytesIO()
    full.quantize(256, dither=Image.Dither.NONE).save(
        file, "png", optimize=True
    )
    return base64.b64encode(file.getvalue()).decode()


def sources(names):
    """Paths of the sources with these names; of all, if there are none."""
    if names:
        return [FOLDER / f"{Path(name).stem}.py" for name in names]
    return sorted(FOLDER.glob("[0-9][0-9]_*.py"))


if __name__ == "__main__":
    for path in sources(sys.argv[1:]):
        print(path.stem, flush=True)
        nbformat.write(execute(path), path.with_suffix(".ipynb"))
