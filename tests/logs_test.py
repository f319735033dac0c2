import logging

import pytest

from elmo_tasks.logs import logging_from


class TestLoggingFrom:
    def test_hides_what_is_below_the_level(self, caplog):
        """Oracle: the messages of a logger below the library's, at both sides of the level, within and after."""
        logger = logging.getLogger("library_of_test.part")
        caplog.set_level(logging.INFO)
        with logging_from(logging.WARNING, "library_of_test"):
            logger.info("hidden")
            logger.warning("shown")
        logger.info("shown again")

        assert caplog.messages == ["shown", "shown again"]

    def test_the_level_is_restored_after_an_error(self):
        """Oracle: the level before."""
        logger = logging.getLogger("library_of_test")
        logger.setLevel(logging.DEBUG)
        with pytest.raises(ValueError, match="any"), logging_from(logging.ERROR, "library_of_test"):
            raise ValueError("any")

        assert logger.level == logging.DEBUG
