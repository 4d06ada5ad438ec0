"""How many labels each way of choosing them needs for the same accuracy, and what the chosen ones say of the pool."""
