"""From an address to bytes: decides who fetches it, if anybody may."""

from __future__ import annotations

import requests

from jobs.images import cloud, embedded
from jobs.images.destination import Resolve, resolve
from jobs.images.location import check_signs
from jobs.images.origins import Origins
from jobs.images.reasons import Away, NotServed, SetAside
from jobs.images.web import Web
from models.shelf import Key, key_of
from studio import files
from studio.client import Client
from studio.errors import Forbidden, NotFound, NotLabelStudio, Refused, ServerFault, Unreachable


class Fetcher:
    """Safe to share between threads."""

    def __init__(self, client: Client, origins: Origins, *, resolver: Resolve = resolve) -> None:
        self._client = client
        self._origins = origins
        self._web = Web(origins, resolver=resolver)

    def fetch(self, address: str) -> bytes:
        """Raises SetAside, or Away where the image is not to blame; and whatever a Label Studio that is away raises."""
        if address[:5].lower() == "data:":
            return embedded.decode(address)
        if self._is_on_label_studio(address):
            return self._from_label_studio(address)
        location, prefix = self._origins.find(address)
        if location.is_web:
            return self._web.fetch(location, prefix, address)
        return cloud.fetch(location, address)

    def key(self, address: str) -> Key:
        """Stands for the address: one on Label Studio, however it is written, is another than the same on another."""
        if self._is_on_label_studio(address):
            path = address.removeprefix(self._client.url)
            return key_of(f"{self._client.url}{path}")
        return key_of(address)

    def _is_on_label_studio(self, address: str) -> bool:
        ours = address.startswith("/") and not address.startswith("//")
        return ours or address.startswith(f"{self._client.url}/")

    def _from_label_studio(self, address: str) -> bytes:
        check_signs(address)
        try:
            return files.fetch(self._client, address)
        except (files.ForeignFile, files.FileTooLarge) as error:
            raise SetAside(str(error)) from error
        except (NotFound, Forbidden, Refused, NotLabelStudio) as error:
            raise NotServed(str(error)) from error
        except ServerFault as error:
            raise Away(str(error)) from error
        except requests.exceptions.RequestException as error:
            raise Unreachable(f"Label Studio at {self._client.url} broke off while sending an image") from error
