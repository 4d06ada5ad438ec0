"""One function decides what models run on, and how."""

from __future__ import annotations

import pytest
import torch

from models.device import Compute, NoSuchDevice, Portion, Probe, choose


class Machine(Probe):
    """A machine with so many GPUs, which this one need not have."""

    def __init__(self, gpus: int, *, bfloat16: bool = True) -> None:
        self._gpus, self._bfloat16 = gpus, bfloat16

    def gpus(self) -> int:
        return self._gpus

    def name(self, gpu: int) -> str:
        return f"Tesla number {gpu}"

    def memory(self, gpu: int) -> int:
        return 16 * 2**30

    def bfloat16(self, gpu: int) -> bool:
        return self._bfloat16


@pytest.mark.parametrize("wanted", [None, "auto"])
@pytest.mark.parametrize(("gpus", "chosen"), [(2, "cuda:0"), (0, "cpu")])
def test_a_gpu_is_taken_where_there_is_one(wanted: str | None, gpus: int, chosen: str) -> None:
    assert choose(wanted, probe=Machine(gpus)).device == torch.device(chosen)


def test_a_new_gpu_computes_in_bfloat16_with_the_channels_last_and_pinned_memory() -> None:
    compute = choose(probe=Machine(1))
    assert (compute.autocast, compute.channels_last, compute.pinned) == (torch.bfloat16, True, True)
    assert compute.keep == 2 * 2**30
    assert compute.why == "On Tesla number 0 with 16 GB, in bfloat16."


def test_an_old_gpu_computes_in_float32() -> None:
    compute = choose(probe=Machine(1, bfloat16=False))
    assert (compute.autocast, compute.channels_last) == (None, True)
    assert "in float32, because it does not compute in bfloat16" in compute.why


def test_the_cpu_computes_in_float32() -> None:
    compute = choose(probe=Machine(0))
    assert (compute.autocast, compute.channels_last, compute.pinned) == (None, True, False)
    assert compute.why == "On the CPU in float32, because no CUDA GPU is usable here."


def test_the_cpu_can_be_asked_for_beside_a_gpu() -> None:
    compute = choose("cpu", probe=Machine(1))
    assert compute.device == torch.device("cpu")
    assert compute.why == "On the CPU in float32, because it was asked for."


def test_one_of_several_gpus_can_be_asked_for() -> None:
    assert choose("cuda:1", probe=Machine(2)).device == torch.device("cuda:1")
    assert choose("cuda", probe=Machine(2)).device == torch.device("cuda:0")


@pytest.mark.parametrize("wanted", ["cuda", torch.device("cuda:1")])
def test_a_missing_gpu_is_said_and_not_replaced(wanted: str | torch.device) -> None:
    with pytest.raises(NoSuchDevice, match="no CUDA GPU"):
        choose(wanted, probe=Machine(0))


def test_a_gpu_beyond_the_last_is_said() -> None:
    with pytest.raises(NoSuchDevice, match="'cuda:2' was asked for, but the last one here is 'cuda:1'"):
        choose("cuda:2", probe=Machine(2))


@pytest.mark.parametrize("wanted", ["toaster", "meta", "mps", ""])
def test_an_unknown_device_is_said(wanted: str) -> None:
    with pytest.raises(NoSuchDevice, match=f"unknown device '{wanted}'"):
        choose(wanted)


def test_this_machine_can_be_asked() -> None:
    assert isinstance(choose(), Compute)


def test_a_portion_is_never_larger_than_the_work() -> None:
    assert Portion(32).that_fits(5, lambda size: size) == 5


def test_a_portion_is_remembered_once_it_was_too_large() -> None:
    tried = []

    def work(size: int) -> int:
        tried.append(size)
        if size > 4:
            raise torch.OutOfMemoryError("too many")
        return size

    portion = Portion(32)
    assert portion.that_fits(20, work) == 2
    assert portion.that_fits(20, work) == 2
    assert tried == [20, 10, 5, 2, 2]
