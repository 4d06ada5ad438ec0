"""How fast a selection of ours is beside those of other libraries, on the same arrays."""
