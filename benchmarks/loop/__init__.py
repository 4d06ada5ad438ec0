"""How long the loop takes from the k-th label to the next batch, and how long annotators wait beside a training: on a
real Label Studio, next to bare training and next to the official server."""
