"""Claims and the published table of arXiv 2511.07368 beyond training on outcomes."""
