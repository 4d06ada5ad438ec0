"""One function decides what models run on."""

from __future__ import annotations

import pytest
import torch

from models.device import NoSuchDevice, choose_device


@pytest.mark.parametrize("wanted", [None, "auto"])
@pytest.mark.parametrize(("has_gpu", "chosen"), [(True, "cuda"), (False, "cpu")])
def test_a_gpu_is_taken_where_there_is_one(wanted: str | None, has_gpu: bool, chosen: str) -> None:
    assert choose_device(wanted, cuda_available=lambda: has_gpu) == torch.device(chosen)


def test_the_cpu_can_be_asked_for_beside_a_gpu() -> None:
    assert choose_device("cpu", cuda_available=lambda: True) == torch.device("cpu")


@pytest.mark.parametrize("wanted", ["cuda", torch.device("cuda:1")])
def test_a_missing_gpu_is_said_and_not_replaced(wanted: str | torch.device) -> None:
    with pytest.raises(NoSuchDevice, match="no CUDA GPU"):
        choose_device(wanted, cuda_available=lambda: False)


def test_an_unknown_device_is_said() -> None:
    with pytest.raises(NoSuchDevice, match="unknown device 'toaster'"):
        choose_device("toaster")
