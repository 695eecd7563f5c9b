"""Templates of pages: every name that one asks for must be given."""

from families import FOLDER
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template


def template(name: str) -> Template:
    """Return the template of a file beside this one."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(name)
