"""The lime package's modules, classes and methods, answered by whytrust.

    import whytrust.compat.lime as lime
    from whytrust.compat.lime.lime_text import LimeTextExplainer

Arguments and attributes are lime's, and so is the question (variant="reference"): the same kernel, ridge and selection. The
sampling is whytrust's, so numbers agree up to chance, and the same call always gives the same numbers. `exp.whytrust[label]` is
the full explanation, with standard errors and notes.
"""

# ruff: noqa: F401 (imported so that lime.lime_text and its like are there at once)
import whytrust.compat.lime.discretize
import whytrust.compat.lime.exceptions
import whytrust.compat.lime.explanation
import whytrust.compat.lime.lime_base
import whytrust.compat.lime.lime_image
import whytrust.compat.lime.lime_tabular
import whytrust.compat.lime.lime_text
import whytrust.compat.lime.submodular_pick
import whytrust.compat.lime.utils.generic_utils
import whytrust.compat.lime.wrappers.scikit_image
