"""GAR on your own images or features, from .npz files.

Usage: python -m gar_keras {fit,predict} --help
"""

import sys

from gar_keras.classification.command import main

if __name__ == "__main__":
    sys.exit(main())
