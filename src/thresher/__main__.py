"""``python -m thresher`` is ``thresher``."""

from .cli import main

if __name__ == "__main__":  # not in a worker that imports it again
    main()
