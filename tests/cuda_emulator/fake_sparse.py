"""The sparse matrix of the fake CuPy."""


class csr_matrix:
    """The arrays of a matrix of SciPy's, each with a copy on the device; in its format, which need not be CSR."""

    __module__ = "cupyx.scipy.sparse"
    ndim = 2

    def __init__(self, X, asarray):
        self._given, self._asarray = X, asarray
        self.format, self.shape, self.dtype = X.format, X.shape, X.dtype
        self.data, self.indices, self.indptr = map(asarray, (X.data, X.indices, X.indptr))

    has_canonical_format = property(lambda self: self._given.has_canonical_format)

    def copy(self):
        return csr_matrix(self._given.copy(), self._asarray)

    def sum_duplicates(self):
        self._given.sum_duplicates()
        self.__init__(self._given, self._asarray)
