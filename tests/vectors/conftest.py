from tests.bilm.conftest import bilm, files  # noqa: F401
