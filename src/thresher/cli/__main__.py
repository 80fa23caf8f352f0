"""``python -m thresher.cli`` is ``thresher``."""

from . import main

if __name__ == "__main__":  # not in a worker that imports it again
    main()
