"""Which device is taken, and what is said where a GPU cannot be used; the failures are faked."""

import os
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from cuda_emulator import EmulatorError, fake_cupy

from skhorseshoe import HorseshoeProbitClassifier, show_versions
from skhorseshoe._backends import device as _device

BIG = 2**23  # elements
X = np.random.default_rng(0).standard_normal((40, 3))
Y = np.arange(40) % 2


MISSING = {
    "no CuPy": r"CuPy is not installed: pip install 'cupy-cuda13x\[ctk\]' \(or cupy-cuda12x",
    "broken CuPy": r"CuPy cannot be imported \(ImportError: libsomething\.so\): pip install",
    "no driver": r"CuPy 0.0.0 finds no NVIDIA driver or card \(RuntimeError: cudaErrorInsufficientDriver\)",
    "a fork": r"initialization error\). A process forked from one .* start it by 'spawn' or joblib's 'loky'",
    "no libraries": r"finds a card but not the CUDA libraries that it needs \(ImportError: .*cusolver.*\): pip install",
    "no compiler": r"not the CUDA libraries that it needs \(OSError: libnvrtc.so.13: cannot open\): pip install",
    "wrong answer": r"a kernel gave a wrong answer",
}


@pytest.fixture(params=MISSING)
def without_gpu(request):
    """A machine on which something is missing, and what is to be said about it."""
    with fake_cupy.installed() as card, pytest.MonkeyPatch.context() as monkeypatch:
        runtime = sys.modules["cupy"].cuda.runtime
        errors = {"no driver": "InsufficientDriver", "a fork": "InitializationError: initialization error"}
        if request.param == "no CuPy":
            monkeypatch.setitem(sys.modules, "cupy", None)
        elif request.param == "broken CuPy":
            monkeypatch.delitem(sys.modules, "cupy")
            monkeypatch.setattr(sys, "meta_path", [SimpleNamespace(find_spec=broken_cupy), *sys.meta_path])
        elif request.param in errors:
            runtime.getDeviceCount = raises(RuntimeError(f"cudaError{errors[request.param]}"))
        elif request.param == "no libraries":
            monkeypatch.delattr(sys.modules["cupy_backends.cuda.libs"], "cusolver")
        elif request.param == "no compiler":
            card.module = raises(OSError("libnvrtc.so.13: cannot open"))
        else:
            silent = SimpleNamespace(get_function=lambda name: lambda *arguments: None)
            card.module = lambda code, options: silent
        yield MISSING[request.param]


def raises(error):
    def function(*args, **kwargs):
        raise error

    return function


def broken_cupy(name, *rest):
    if name == "cupy":
        raise ImportError("libsomething.so")


def test_a_named_gpu_that_cannot_be_used_is_refused(without_gpu):
    with pytest.raises(RuntimeError, match=rf"device='cuda' cannot be used: .*{without_gpu}.*Use device='cpu'"):
        HorseshoeProbitClassifier(device="cuda").fit(X, Y)


def test_auto_is_then_the_cpu_without_a_word(without_gpu, recwarn, capfd):
    device = _device.resolve("auto", BIG)
    assert device.name == "cpu"
    assert device.reason.startswith("no GPU: ")
    assert not recwarn
    assert capfd.readouterr() == ("", "")


def test_show_versions_says_why(without_gpu, capsys):
    show_versions()
    said = capsys.readouterr().out
    for line in (rf"cuda: not available. .*{without_gpu}", r"numpy: \d", r"cpu: \d+ threads"):
        assert re.search(line, said)
    assert "no BLAS whose threads can be set" not in said


def test_auto_is_a_gpu_that_works_if_the_problem_is_worth_it(card):
    assert _device.resolve("auto", BIG)[1:] == ("cuda:0", "emulator")
    small = _device.resolve("auto", 1000)
    assert small.name == "cpu"
    assert "1000 elements" in small.reason


@pytest.mark.parametrize("size", [1000, BIG])
def test_nothing_is_said_of_gpus_where_cupy_is_not_installed(size, monkeypatch):
    monkeypatch.setattr(_device, "_may_have_gpu", lambda: False)
    assert _device.resolve("auto", size)[1:] == ("cpu", "")


def test_the_probe_is_made_once(card):
    assert _device.gpu_status() == (True, "emulator")
    card.module = raises(EmulatorError("asked again"))
    assert _device.gpu_status() == (True, "emulator")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_probes_again(monkeypatch):
    """CUDA does not survive a fork."""
    with fake_cupy.installed():
        monkeypatch.setattr("skhorseshoe._backends._gpu.probe.probe", lambda index: (True, str(os.getpid())))
        before = _device.gpu_status()
        child = os.fork()
        if child == 0:
            os._exit(_device.gpu_status() == before)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert _device.gpu_status() == before


def test_a_gpu_that_is_not_there_is_refused(card):
    with pytest.raises(RuntimeError, match=r"device='cuda:3' .*no GPU number 3: this machine has 1, numbered from 0"):
        HorseshoeProbitClassifier(device="cuda:3").fit(X, Y)


def test_the_fake_is_gone_afterwards():
    def ours():
        return {name: module for name, module in sys.modules.items() if name.startswith(("cupy", "skhorseshoe._back"))}

    before = ours()
    with fake_cupy.installed():
        _device.resolve("cuda")
    assert ours() == before


def test_show_versions_names_the_card_and_what_blas_lacks(card, capsys, monkeypatch):
    """As on a Mac, with Apple's Accelerate."""
    monkeypatch.setattr("threadpoolctl.threadpool_info", list)
    show_versions()
    said = capsys.readouterr().out
    assert "cuda: emulator" in said
    assert "no BLAS whose threads can be set" in said
