"""The fault suite: the live loop while everything in it is killed at random and webhooks are lost. `make faults`."""
