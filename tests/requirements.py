"""Print the requirements of the given extras of pyproject.toml, for ``pip install``."""

import sys
import tomllib
from pathlib import Path

DEFAULT_EXTRAS = ("spark", "s3", "gcs", "azure", "metrics", "test", "lint")


def main() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    wanted = list(project["dependencies"])
    for extra in sys.argv[1:] or DEFAULT_EXTRAS:
        wanted += project["optional-dependencies"][extra]
    print("\n".join(requirement.replace(" ", "") for requirement in wanted))


if __name__ == "__main__":
    main()
