"""The weighted training set on its way out: to files of many formats, each with a manifest, here or over HTTP."""
