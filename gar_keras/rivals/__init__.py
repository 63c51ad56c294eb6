"""Other semi-supervised methods, on the network and the labels of GAR.

`METHODS` has them by the names of `Experiment.method`. Those that train a
network go on where stage 1 ends, with the labels, batches, steps and optimizer
of GAR; the others need no network.

>>> sorted(METHODS)  # doctest: +NORMALIZE_WHITESPACE
['embed-cnn', 'entropy', 'hagr', 'label-spreading', 'mean-teacher', 'pi',
 'pseudo-label', 'supervised', 'vat', 'vat-entropy']
"""

from gar_keras.rivals.base import Learner
from gar_keras.rivals.base import Rival
from gar_keras.rivals.embed_cnn import EmbedCNN
from gar_keras.rivals.entropy import EntropyMinimization
from gar_keras.rivals.hagr import HAGR
from gar_keras.rivals.label_spreading import LabelSpreading
from gar_keras.rivals.mean_teacher import MeanTeacher
from gar_keras.rivals.pi_model import PiModel
from gar_keras.rivals.pseudo_label import PseudoLabel
from gar_keras.rivals.supervised import Supervised
from gar_keras.rivals.vat import VirtualAdversarialTraining
from gar_keras.rivals.vat import VirtualAdversarialTrainingEntropy

__all__ = ["METHODS", "Learner", "Rival"]

METHODS = {
    "supervised": Supervised,
    "entropy": EntropyMinimization,
    "pseudo-label": PseudoLabel,
    "pi": PiModel,
    "vat": VirtualAdversarialTraining,
    "vat-entropy": VirtualAdversarialTrainingEntropy,
    "mean-teacher": MeanTeacher,
    "embed-cnn": EmbedCNN,
    "label-spreading": LabelSpreading,
    "hagr": HAGR,
}
