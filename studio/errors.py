"""What can go wrong with a Label Studio server, each as a type whose message tells the admin what to do."""

from __future__ import annotations


class StudioError(RuntimeError):
    """Label Studio did not do what was asked of it."""


class Unreachable(StudioError):
    """No answer: wrong address, not running, or a network in between. Worth another try later."""


class NotLabelStudio(StudioError):
    """Something answers at the address, but not Label Studio."""


class BadToken(StudioError):
    """The credential is refused."""


class Forbidden(StudioError):
    """The credential is known but may not do this, or Label Studio refuses the address it was given."""


class NotFound(StudioError):
    """No such project, task or row."""


class Refused(StudioError):
    """Label Studio calls the request wrong; the message carries its own words."""


class ServerFault(StudioError):
    """Label Studio failed (5xx). Worth another try later."""


class UnsupportedConfig(StudioError):
    """The labelling config has no control this backend can learn."""


class BadMessage(StudioError):
    """A message to the backend that is not what Label Studio sends; the message names the field."""


class QueueIncomplete(StudioError):
    """Label Studio stored fewer queue entries than were sent; nothing was switched."""
