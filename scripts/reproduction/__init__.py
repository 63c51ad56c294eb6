"""What reproduces the paper.

`settings`, `methods`, `studies`, `paths` and `commands` need no Keras, so that
a command line is read at once; everything else does.
"""
