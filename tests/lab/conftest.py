import pytest

for name in ("numpy", "numba", "matplotlib"):
    pytest.importorskip(name, reason="the laboratory's tests need the extra lab")
