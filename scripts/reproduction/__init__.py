"""What reproduces the paper.

A command line that only asks for something trains nothing: it gets Keras on
NumPy. TensorFlow takes seconds to load, and writes lines of log.
"""

import os
import sys

from reproduction import quick_start

# None of the notes of TensorFlow's C++ code is about GAR. It looks at this
# while it is loaded.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

if {"-h", "--help", "--dry-run"} & {*sys.argv}:
    quick_start.load_keras()
