"""The list of kinds of bad input: each module adds its own."""

import dataclasses
from typing import Callable, Sequence

KINDS = {}


@dataclasses.dataclass
class Kind:
    """How one kind of bad input is made."""

    name: str
    # (place, studies, source of random numbers, item) -> Case. Prepares the place. The item is None where the input is to be random.
    make: Callable
    # Maker of the input undamaged, which must end with 0: else every refusal would mean nothing. (place, studies) -> Case.
    sound: Callable
    # Inputs that were thought of.
    items: Sequence
    # How many random ones there are for each of another kind's.
    share: int

    def __str__(self):
        return f"{self.name}: {self.make.__doc__.splitlines()[0]}"


def kind(sound, items=(), share=0):
    """Adds a function that makes bad inputs as a kind of its name."""

    def add(make):
        name = make.__name__.replace("_", "-")
        KINDS[name] = Kind(name, make, sound, items, share)
        return make

    return add
