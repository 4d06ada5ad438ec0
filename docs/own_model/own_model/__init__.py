"""Two models of one's own for the IWeS backend, as an example to start from."""
