"""The few CuPy names that the back end uses, on NumPy arrays, with kernels in the emulator and libraries from SciPy.

As strict as CuPy where that finds mistakes: an array never turns into a NumPy array by itself, never mixes with one,
and new memory is not zero.
"""

import sys
import weakref
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace

import numpy as np
from scipy.special import ndtr

from skhorseshoe._backends import _gpu
from skhorseshoe._backends import device as _device
from skhorseshoe._backends._gpu import cuda as sources

from . import Kernel, Module, build, source
from .fake_libraries import USUAL, libraries
from .fake_streams import Event, Main, Stream, later, made, refuse_beside, synchronize_all

_MODULES = (
    "cupy",
    "cupy.cuda",
    "cupy.cuda.device",
    "cupy_backends",
    "cupy_backends.cuda",
    "cupy_backends.cuda.libs",
    "cupyx",
    "cupyx.scipy",
    "cupyx.scipy.special",
    "cupyx.scipy.sparse",
)


class Device:
    """The device with this number, as a context that makes it the current one."""

    current = 0
    count = 1

    def __init__(self, index):
        self.id = index

    def __enter__(self):
        if self.id >= Device.count:
            raise RuntimeError("cudaErrorInvalidDevice: invalid device ordinal")
        self.before, Device.current = Device.current, self.id

    def __exit__(self, *error):
        Device.current = self.before


class Memory:
    """Bytes of the arrays that are alive, now and at most."""

    now: "Memory"  # of what is installed

    def __init__(self):
        self.held = self.most = 0
        self.counted = set()  # the arrays that own their memory, by number

    def count(self, values):
        while isinstance(values.base, np.ndarray):
            values = values.base
        if id(values) not in self.counted:
            self.counted.add(id(values))
            self.held += values.nbytes
            self.most = max(self.held, self.most)
            weakref.finalize(values, self._forget, id(values), values.nbytes)

    def _forget(self, key, n_bytes):
        self.counted.discard(key)
        self.held -= n_bytes


class ndarray(np.lib.mixins.NDArrayOperatorsMixin):
    __module__ = "cupy"
    reads = 0  # times that the host has waited for a value

    def __init__(self, values, index=None):
        self._host = values
        Memory.now.count(values)
        self.device = Device(Device.current if index is None else index)

    def __array__(self, *args, **kwargs):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **kwargs):
        if any(isinstance(value, np.ndarray) for value in inputs):
            raise TypeError("Unsupported type <class 'numpy.ndarray'>")
        _refuse_another_device(inputs)
        compute, given = getattr(ufunc, method), tuple(map(_host, inputs))
        if out is None:
            return ndarray(made(lambda: compute(*given, **kwargs)))
        refuse_beside()
        kwargs["out"] = tuple(map(_host, out))
        later(lambda: compute(*given, **kwargs))
        return out[0]

    def __array_function__(self, function, types, args, kwargs):
        """NumPy's functions, called with CuPy's arrays, are CuPy's."""
        if set(types) != {ndarray}:
            raise TypeError("Unsupported type <class 'numpy.ndarray'>")
        return _do(function, *args, **kwargs)

    shape = property(lambda self: self._host.shape)
    dtype = property(lambda self: self._host.dtype)
    ndim = property(lambda self: self._host.ndim)
    size = property(lambda self: self._host.size)
    nbytes = property(lambda self: self._host.nbytes)
    flags = property(lambda self: self._host.flags)
    T = property(lambda self: ndarray(self._host.T))
    data = property(lambda self: SimpleNamespace(ptr=self._host.__array_interface__["data"][0]))

    def __len__(self):
        return len(self._host)

    def _read(self):
        ndarray.reads += 1
        return self._host

    def __float__(self):
        return float(self._read())

    def __int__(self):
        return int(self._read())

    def __bool__(self):
        return bool(self._read())

    def get(self, *, stream, out, blocking):
        """To pinned memory, without waiting."""
        if blocking or out.shape != self.shape or out.dtype != self.dtype:
            raise TypeError("not a copy that the host does not wait for")
        if stream is Main:
            values = self._host.copy()
            Main.land(lambda: np.copyto(out, values))
        else:
            stream.put(lambda: np.copyto(out, self._host))

    def set(self, values, stream=None):
        """From pinned memory on a stream of its own, without waiting; or on the main one."""
        if values.shape != self.shape or values.dtype != self.dtype or not self.flags.c_contiguous:
            raise TypeError("Shape or dtype mismatch, or not contiguous")
        if stream is None:
            np.copyto(self._host, values)
        else:
            stream.put(lambda: np.copyto(self._host, values))

    def __getitem__(self, index):
        values, at = self._host, _host(index)
        out = made(lambda: values[at], values)
        if not np.may_share_memory(out, values):  # a kernel has taken them
            _refuse_another_device((self,))
        return ndarray(out, self.device.id)

    def __setitem__(self, index, value):
        if isinstance(value, np.ndarray) and value.ndim:
            raise TypeError("Unsupported type <class 'numpy.ndarray'>")
        refuse_beside()
        _refuse_another_device((self, value))
        later(lambda: self._host.__setitem__(_host(index), _host(value)))

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def _method(name):
        def method(self, *args, **kwargs):
            _refuse_another_device((self,))
            return _do(getattr(self._host, name), *args, **kwargs)

        return method

    sum, mean, all, any = map(_method, ("sum", "mean", "all", "any"))
    copy, reshape, astype, view = map(_method, ("copy", "reshape", "astype", "view"))
    swapaxes, argsort = map(_method, ("swapaxes", "argsort"))

    def nonzero(self):
        return tuple(map(_wrap, self._read().nonzero()))

    def sort(self):
        if not self.flags.c_contiguous:
            raise NotImplementedError("Sorting non-contiguous array is not supported.")
        self._host.sort()


def _refuse_another_device(values):
    """CuPy's own kernels want all arrays on the current device; for ours, which nobody asks, it is as true."""
    if any(value.device.id != Device.current for value in values if isinstance(value, ndarray)):
        raise ValueError("Array device must be same as the current device")


def _host(value):
    if isinstance(value, tuple):
        return tuple(map(_host, value))
    return value._host if isinstance(value, ndarray) else value


def _wrap(value):
    return ndarray(np.asarray(value))


def _do(function, *args, **kwargs):
    """As an array of the device, what a function or method of NumPy's makes."""
    _refuse_another_device(args)
    given = tuple(map(_host, args))
    return ndarray(made(lambda: function(*given, **kwargs), getattr(function, "__self__", None), *given))


def _function(name):
    return lambda *args, **kwargs: _do(getattr(np, name), *args, **kwargs)


class OutOfMemoryError(MemoryError):
    pass


class Card:
    """What the fake device has, and what a test wants to see or change."""

    def __init__(self, order="forward"):
        self.order = order
        self.memory = Memory.now = Memory()
        self.free = 2**34
        self.held_when_freed = None  # at the last time that the pool was told to give memory back
        self.staged = 0  # bytes of the largest array that CuPy has copied into pinned memory on its way here
        self.used = set()  # the devices that kernels were loaded for
        self.flags = ("-O1",)
        self.properties = {
            "name": b"emulator",
            "multiProcessorCount": 2,
            "sharedMemPerBlockOptin": 227 * 1024,
            "sharedMemPerMultiprocessor": 228 * 1024,
            "regsPerMultiprocessor": 32_768,  # two blocks at most: the rows of small problems are still cut up
            "maxThreadsPerMultiProcessor": 2048,
            "l2CacheSize": 2 * 380 * 1024,  # for each multiprocessor as much as on an H200
        }

    def allocate(self, shape, dtype=np.float64):
        """New memory: NaN, or another value that no one expects."""
        values = np.empty(shape, dtype)
        if values.nbytes > self.free:
            raise OutOfMemoryError(f"Out of memory allocating {values.nbytes:,} bytes")
        values.reshape(-1).view(np.uint8)[...] = 0xFF if values.size else 0
        return ndarray(values)

    def free_all_blocks(self):
        self.held_when_freed = self.memory.held

    def free_bytes(self):
        return 0

    def module(self, code, options):
        """The emulator's form of a module of ours, and of what a test has written after it."""
        self.used.add(Device.current)
        name = next(name for name in sources.MODULES if code.startswith(sources.source(name)))
        text = source(name, code.removeprefix(sources.source(name)))
        module = Module(build(text, (*self.flags, *options)), self.order)
        return SimpleNamespace(get_function=lambda name: _LaterKernel(module, name))


class _LaterKernel(Kernel):
    """A kernel that runs when its stream does."""

    def __call__(self, grid, block, arguments, **sizes):
        _refuse_another_device(arguments)
        run = super().__call__
        later(lambda: run(grid, block, arguments, **sizes))


def _modules(card):
    """The fake modules by name."""
    modules = {name: ModuleType(name) for name in _MODULES}
    cupy, cuda, device = (modules[name] for name in _MODULES[:3])
    modules["cupy_backends.cuda.libs"].__dict__.update(libraries())
    device.get_cublas_handle = device.get_cusolver_handle = lambda: USUAL

    cuda.__dict__.update(
        device=device,
        Device=Device,
        Stream=Stream,
        Event=Event,
        get_current_stream=lambda: Stream.current or Main,
        memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
        runtime=SimpleNamespace(
            getDevice=lambda: Device.current,
            getDeviceCount=lambda: Device.count,
            getDeviceProperties=lambda index: card.properties,
            memGetInfo=lambda: (card.free, 2**34),
            deviceSynchronize=synchronize_all,
            driverGetVersion=lambda: 0,
            runtimeGetVersion=lambda: 0,
        ),
    )

    def asarray(values, dtype=None):
        if isinstance(values, ndarray):
            return ndarray(made(lambda: np.asarray(values._host, dtype), values._host), values.device.id)
        values = np.asarray(values, dtype)
        card.staged = max(card.staged, values.nbytes)
        out = card.allocate(values.shape, values.dtype)
        out._host[...] = values
        return out

    def copyto(to, values, where):
        refuse_beside()
        _refuse_another_device((to, values, where))
        later(lambda: np.copyto(to._host, values._host, where=where._host))

    def empty_pinned(shape, dtype):
        values = np.empty(shape, dtype)
        values.view(np.uint8)[...] = 0xFF
        return values

    modules["cupyx"].empty_pinned = empty_pinned
    modules["cupyx.scipy.sparse"].csr_matrix = type("csr_matrix", (), {"__module__": "cupyx.scipy.sparse"})
    modules["cupyx.scipy.special"].ndtr = lambda values, out=None: _wrap(ndtr(values._host, out=_host(out)))
    names = ("zeros", "zeros_like", "ones", "eye", "where", "exp", "expm1", "log", "log1p", "sqrt", "ascontiguousarray")
    names += ("sort", "isfinite", "quantile", "minimum", "searchsorted", "triu", "cos", "sin")
    cupy.__dict__.update(
        {name: _function(name) for name in names},
        __version__="0.0.0",
        cuda=cuda,
        ndarray=ndarray,
        asarray=asarray,
        copyto=copyto,
        asnumpy=lambda values: values._read().copy(),
        matmul=np.matmul,
        empty=card.allocate,
        concatenate=lambda some: _do(np.concatenate, tuple(some)),
        argsort=lambda values: _wrap(np.argsort(values._host, kind="stable")),
        empty_like=lambda values: card.allocate(values.shape, values.dtype),
        RawModule=lambda code, options: card.module(code, options),  # which a test may replace
        get_default_memory_pool=lambda: card,
        get_default_pinned_memory_pool=lambda: SimpleNamespace(free_all_blocks=lambda: None),
        **{name: getattr(np, name) for name in ("float32", "float64", "uint8", "int32", "uint32")},
    )
    return modules


@contextmanager
def installed(order="forward", count=1):
    """A context in which ``skhorseshoe._backends._gpu.dense`` can be imported and computes in the emulator; gives the
    ``Card``.

    count : of the devices that there are.
    """
    card, Device.count = Card(order), count
    before = _take_out()
    sys.modules.update(_modules(card))
    try:
        yield card
    finally:
        _take_out()
        sys.modules.update(before)
        for name in filter(_is_ours, before):
            setattr(_gpu, name.rpartition(".")[2], before[name])


def _take_out():
    """Remove CuPy and what has imported it; returns what was removed."""
    names = [name for name in sys.modules if name.startswith("cupy") or _is_ours(name)]
    _device.gpu_status.cache_clear()
    for name in filter(_is_ours, names):  # nor is it to be found as an attribute of its package, which stays
        vars(_gpu).pop(name.rpartition(".")[2], None)
    return {name: sys.modules.pop(name) for name in names}


def _is_ours(name):
    return name.startswith(f"{_gpu.__name__}.") and name != sources.__name__
