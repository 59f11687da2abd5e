"""An artefact planted into an input, whose place is known: what a model should not go by, and an explanation should give away.

Ribeiro, Singh and Guestrin (2016) train models on data with a flaw that is known: noisy words in some of the training texts
(§ 5.4), snow in every picture of one class (§ 6.4). A plant is such a flaw for any domain: a token in a text, a 0/1 column of a
table, a patch in an image or a spectrogram, a beep in a waveform.

Plants keep nothing of the inputs that they were put into: where one is, `parts_of` finds by its looks. So it misleads where an
input has something of its own that looks the same (a white corner and a white patch, a tone of the beep's pitch).
"""

from whytrust.planting.plant import Plant, Which, holding, planted
from whytrust.planting.signals import Beep, Patch
from whytrust.planting.symbols import Column, Tokens

__all__ = ["Beep", "Column", "Patch", "Plant", "Tokens", "Which", "holding", "planted"]
