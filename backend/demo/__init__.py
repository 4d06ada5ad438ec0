"""The demo: a real Label Studio with a project of real images, connected and running on one machine."""
