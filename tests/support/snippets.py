"""The Python in Markdown pages, run as a reader would."""

import re


def python_blocks(text):
    """The Python of a page, a text a block; one short epoch, two folds."""
    text = re.sub(r"images_per_epoch=[\d_]+", "images_per_epoch=448", text)
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.M)
    blocks = [re.sub(r"epochs=\d+", "epochs=1", block) for block in blocks]
    return [re.sub(r"cv=\d+", "cv=2", block) for block in blocks]


def text_blocks(text):
    """What a page shows as printed, a text for each block."""
    return re.findall(r"^```text\n(.*?)^```$", text, re.DOTALL | re.M)


def run_blocks(blocks, arrays):
    """Runs blocks in order, in one namespace that begins with some arrays.

    Args:
        blocks: Texts.
        arrays: What the namespace holds before each of them, by name.

    Returns:
        The namespace at the end.
    """
    namespace = {}
    for number, block in enumerate(blocks, start=1):
        # A block may call other things by these names.
        namespace |= arrays
        exec(compile(block, f"block {number}", "exec"), namespace)
    return namespace
