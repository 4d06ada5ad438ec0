"""Decides what models train and score on, and how: the one place that knows about devices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import torch

KEPT_ON_CPU = 256 * 2**20
TOGETHER_ON_CPU = 5 * 2**18
"""8 images of 224 × 224, whose activations a CPU's caches can still hold; larger batches were up to twice as slow."""
TOGETHER_ON_GPU = 40 * 2**20

Result = TypeVar("Result")


class NoSuchDevice(ValueError):
    """A device was asked for by name that this machine does not have."""


class NotEnoughMemory(RuntimeError):
    """Not even one example fits into the device's memory."""


@dataclass(frozen=True)
class Compute:
    """A device and how to use it well."""

    device: torch.device
    autocast: torch.dtype | None = None  # what layers that allow it compute in; None: in float32 throughout
    channels_last: bool = False  # the memory layout of images and convolutions
    pinned: bool = False  # batches go through page-locked memory, so that copying them does not block
    keep: int = KEPT_ON_CPU  # training sets of at most so many bytes stay on the device
    together: int = TOGETHER_ON_CPU  # images of about so many bytes are scored at once
    why: str = ""  # one sentence


class Probe:
    """Asks torch about this machine's GPUs."""

    def gpus(self) -> int:
        return torch.cuda.device_count() if torch.cuda.is_available() else 0

    def name(self, gpu: int) -> str:
        return torch.cuda.get_device_name(gpu)

    def memory(self, gpu: int) -> int:
        """In bytes."""
        return torch.cuda.get_device_properties(gpu).total_memory

    def bfloat16(self, gpu: int) -> bool:
        """Whether it computes in bfloat16 itself; older ones only pretend to, slowly."""
        with torch.cuda.device(gpu):
            return bool(torch.cuda.is_bf16_supported(including_emulation=False))


def choose(wanted: str | torch.device | None = None, *, probe: Probe | None = None) -> Compute:
    """The device asked for and how to use it; with None or "auto", a GPU where there is one and else the CPU."""
    probe = probe or Probe()
    if wanted is None or wanted == "auto":
        return _gpu(0, probe) if probe.gpus() else _cpu("no CUDA GPU is usable here")
    try:
        device = torch.device(wanted)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise NoSuchDevice(f"unknown device {str(wanted)!r}: use 'auto', 'cpu' or 'cuda'")
    if device.type == "cpu":
        return _cpu("it was asked for")
    number, there = device.index or 0, probe.gpus()
    if not there:
        raise NoSuchDevice(f"device {str(device)!r} was asked for, but no CUDA GPU is usable here: use 'auto' or 'cpu'")
    if number >= there:
        raise NoSuchDevice(f"device {str(device)!r} was asked for, but the last one here is 'cuda:{there - 1}'")
    return _gpu(number, probe)


class Portion:
    """How many examples are worked on at once: half as many from then on whenever memory runs out."""

    def __init__(self, size: int) -> None:
        self.size = size

    def that_fits(self, count: int, work: Callable[[int], Result]) -> Result:
        """The work on so many examples, begun anew in smaller portions until it goes through."""
        while True:
            portion = max(1, min(self.size, count))
            try:
                return work(portion)
            except RuntimeError as error:
                if not _out_of_memory(error):
                    raise
                if portion == 1:
                    raise NotEnoughMemory(f"not even one example fits into memory: {error}") from error
            # only here, where the error and with it all that it holds on to are gone, memory is free again
            torch.cuda.empty_cache()
            self.size = portion // 2


def _out_of_memory(error: BaseException) -> bool:
    """Whether a device says with this error that its memory does not suffice."""
    # the CPU's allocator has no error type of its own: these are its words on Linux and Windows
    words = ("can't allocate memory", "not enough memory")
    return isinstance(error, torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and any(word in str(error) for word in words)
    )


def _cpu(reason: str) -> Compute:
    # channels last: on two cores networks scored 18 to 25 % faster so, and trained 5 to 28 % faster
    return Compute(torch.device("cpu"), channels_last=True, why=f"On the CPU in float32, because {reason}.")


def _gpu(number: int, probe: Probe) -> Compute:
    memory = probe.memory(number)
    # not in float16 where there is no bfloat16: its gradients would have to be scaled and could still overflow
    half = probe.bfloat16(number)
    how = "in bfloat16" if half else "in float32, because it does not compute in bfloat16"
    return Compute(
        torch.device("cuda", number),
        autocast=torch.bfloat16 if half else None,
        channels_last=True,
        pinned=True,
        keep=memory // 8,
        together=TOGETHER_ON_GPU,
        why=f"On {probe.name(number)} with {memory / 2**30:.0f} GB, {how}.",
    )
