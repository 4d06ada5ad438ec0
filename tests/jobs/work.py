"""Two jobs for the tests of the queue."""


def count(number: int) -> int:
    return number + 1


def fail(number: int) -> None:
    raise ValueError(f"{number} cannot be done")
