"""What reproduces the paper.

`settings`, `studies`, `paths`, `processes`, `commands` and the names and terms
of `methods` need no Keras, so that a command line is read at once; everything
else does.
"""
