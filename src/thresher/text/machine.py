"""What this process may use of the machine."""

import os


def available_cores() -> int:
    """The cores that this process may use: in a container or a batch job, fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
