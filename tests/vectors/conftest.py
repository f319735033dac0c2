from tests.bilm.conftest import bilm, files, news  # noqa: F401
