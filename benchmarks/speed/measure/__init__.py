"""What runs in the peers' environment: it imports nothing but numpy, scipy, iwes and the peers."""
