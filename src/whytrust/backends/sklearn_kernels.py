"""Support vector machines of scikit-learn, asked about many masks of one text: kernels by one matrix product.

libsvm compares every row with every support vector word by word, and thousands of masked copies of a text differ in nothing but
which of its few hundred words are there. Restricted to those words, all comparisons are one dense product: of x and s,
‖x − s‖² = ‖x‖² − 2 x·s + ‖s‖². Everything after it, the sum, the sign and Platt's probabilities, stays scikit-learn's: its own
code is given these decision values instead of its own. What differs is the order in which numbers are added up.
"""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.svm import SVC, _libsvm

from whytrust.core import Floats

KERNELS = ("rbf", "linear", "poly", "sigmoid")
_CELLS_AT_ONCE = 1 << 20  # kernel values made at once: they stay in the processor's cache
_EXACT = 1e-10  # what rounding may add to a decision value before libsvm itself is asked
_WIDE = 1 << 13  # rows that have more words than this between them are not copies of one text


def quickened(estimator: Any) -> Any:
    """The same estimator, faster on many rows with few words between them; itself where that is not certain to be exact."""
    if type(estimator) is SVC:
        plain = estimator.kernel in KERNELS and len(getattr(estimator, "classes_", ())) == 2 and len(estimator.support_) > 0
        return QuickSVC.of(estimator) if plain else estimator
    fitted = getattr(estimator, "calibrated_classifiers_", None)
    if type(estimator) is CalibratedClassifierCV and isinstance(fitted, list):
        quick = copy(estimator)
        quick.calibrated_classifiers_ = [_calibrated(one) for one in fitted]
        return quick
    return estimator


def _calibrated(fitted: Any) -> Any:
    """One of the classifiers that a calibration averages, with its SVC quickened where it is one."""
    quick = copy(fitted)
    quick.estimator = quickened(fitted.estimator)
    return quick


class QuickSVC(SVC):  # type: ignore[misc]
    """A fitted SVC of two classes whose decision values are worked out by a matrix product.

    It overrides what asks libsvm and nothing else; a version of scikit-learn that asks in another way is as slow as ever, and
    right.
    """

    @classmethod
    def of(cls, fitted: SVC) -> QuickSVC:
        """The fitted machine itself: nothing of it is copied or changed."""
        quick = cls.__new__(cls)
        quick.__dict__.update(vars(fitted))
        return quick

    def _sparse_decision_function(self, X: Any) -> Floats:
        values = self._values(X)
        return np.asarray(super()._sparse_decision_function(X)) if values is None else values

    def _dense_decision_function(self, X: Any) -> Floats:
        values = self._values(np.asarray(X, dtype=np.float64))
        return np.asarray(super()._dense_decision_function(X)) if values is None else values

    def _sparse_predict_proba(self, X: Any) -> Floats:
        values = self._values(X)
        return np.asarray(super()._sparse_predict_proba(X)) if values is None else self._platt(values)

    def _dense_predict_proba(self, X: Any) -> Floats:
        values = self._values(np.asarray(X, dtype=np.float64))
        return np.asarray(super()._dense_predict_proba(X)) if values is None else self._platt(values)

    def _platt(self, values: Floats) -> Floats:
        """Probabilities of decision values, by libsvm itself: a machine with one support vector, on a line, says the value."""
        one = np.ones((1, 1))
        found = _libsvm.predict_proba(
            np.ascontiguousarray(values), np.zeros(1, np.int32), one, np.array([1, 0], np.int32), one.copy(), np.zeros(1),
            self._probA, self._probB, svm_type=0, kernel="linear")
        return np.asarray(found)

    def _values(self, X: Any) -> Floats | None:
        """(n, 1): libsvm's decision values; None where rounding could show, or the rows have too many words between them."""
        rows = narrowed(X) if sparse.issparse(X) else (X, None)
        if rows is None or len(rows[0]) == 0:
            return None
        x, words = rows
        norms = np.einsum("ij,ij->i", x, x)
        if self.kernel == "rbf" and not self._is_safe(float(norms.max())):
            return None
        vectors, values = self._restricted(words), np.empty((len(x), 1))
        step = max(_CELLS_AT_ONCE // len(vectors), 1)
        for first in range(0, len(x), step):
            here = slice(first, first + step)
            values[here, 0] = self._kernel(x[here] @ vectors.T, norms[here]) @ self._coefficients
        values += self._intercept_[0]
        return values

    def _is_safe(self, largest: float) -> bool:
        """Is what cancels in ‖x‖² − 2 x·s + ‖s‖² too little to be seen?"""
        lost = 4 * np.finfo(np.float64).eps * self._gamma * (largest + float(self._norms.max()))
        return bool(lost * np.abs(self._coefficients).sum() < _EXACT)

    def _kernel(self, dots: Floats, norms: Floats) -> Floats:
        if self.kernel == "linear":
            return dots
        if self.kernel == "rbf":
            dots *= -2
            dots += norms[:, None]
            dots += self._norms
            np.maximum(dots, 0, out=dots)
            dots *= -self._gamma
            return np.exp(dots, out=dots)
        dots *= self._gamma
        dots += self.coef0
        return np.tanh(dots, out=dots) if self.kernel == "sigmoid" else np.asarray(dots ** self.degree)

    @cached_property
    def _coefficients(self) -> Floats:
        found = self._dual_coef_
        return np.asarray(found.toarray() if sparse.issparse(found) else found, dtype=np.float64).ravel()

    @cached_property
    def _norms(self) -> Floats:
        vectors = self.support_vectors_
        squares = vectors.multiply(vectors) if sparse.issparse(vectors) else vectors * vectors
        return np.asarray(squares.sum(axis=1), dtype=np.float64).ravel()

    def _restricted(self, words: NDArray[np.intp] | None) -> Floats:
        """Support vectors with these words alone; those of the rows asked last are kept, for batch after batch has them."""
        if words is None:
            found = self.support_vectors_
            return np.asarray(found.toarray() if sparse.issparse(found) else found)
        kept: tuple[bytes, Floats] | None = self.__dict__.get("_kept")
        if kept is None or kept[0] != words.tobytes():
            found = self.support_vectors_[:, words]
            kept = self.__dict__["_kept"] = (words.tobytes(), np.asarray(found.toarray() if sparse.issparse(found) else found))
        return kept[1]


def narrowed(matrix: Any) -> tuple[Floats, NDArray[np.intp]] | None:
    """Sparse rows, dense in the words that any of them has, and which words those are; None where they are too many."""
    there = np.zeros(matrix.shape[1], dtype=bool)
    there[matrix.indices] = True
    words = np.flatnonzero(there)
    if len(words) > _WIDE:
        return None
    place = np.zeros(matrix.shape[1], dtype=matrix.indices.dtype)
    place[words] = np.arange(len(words))
    narrow = sparse.csr_matrix((matrix.data, place[matrix.indices], matrix.indptr), shape=(matrix.shape[0], len(words)))
    return np.asarray(narrow.toarray(), dtype=np.float64), words
