"""`iwes completion`: the script that makes a shell complete what is typed."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from backend.cli.command import command
from backend.cli.tour import cli

VARIABLE = "_IWES_COMPLETE"
"""By which a shell asks this command what could follow; click answers."""


@command("completion", example='eval "$(iwes completion bash)"')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that lets a shell complete commands and options.

    \b
    bash   echo 'eval "$(iwes completion bash)"' >> ~/.bashrc
    zsh    echo 'eval "$(iwes completion zsh)"' >> ~/.zshrc
    fish   iwes completion fish > ~/.config/fish/completions/iwes.fish
    """
    completer = get_completion_class(shell)
    if completer is None:
        raise click.UsageError(f"click knows no completion for {shell}")
    click.echo(completer(cli, {}, "iwes", VARIABLE).source())
