"""The site: a board as static pages that need no network and no server."""
