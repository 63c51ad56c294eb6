"""What reproduces the paper.

A command line that only asks for something trains nothing: it gets Keras on
NumPy. TensorFlow takes seconds to load, and writes lines of log.
"""

import sys

from reproduction import quick_start

if {"-h", "--help", "--find", "--dry-run"} & {*sys.argv}:
    quick_start.load_keras()
