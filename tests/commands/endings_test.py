import pytest
from allennlp.common.checks import ConfigurationError

from elmo_tasks.commands.errors import errors_in_one_line


class TestErrorsInOneLine:
    @pytest.mark.parametrize("error", [ValueError, OSError, ImportError, ConfigurationError])
    def test_wrong_input_ends_the_command_with_a_line(self, error):
        """Oracle: by hand: `sys.exit` prints its text and gives the status 1."""
        with pytest.raises(SystemExit) as ended, errors_in_one_line("elmo-x"):
            raise error("no\n  file")
        assert ended.value.code == "allennlp elmo-x: error: no file"

    def test_other_errors_keep_their_traceback_unless_they_are_named(self):
        """Oracle: by hand."""
        with pytest.raises(RuntimeError, match="broken"), errors_in_one_line("elmo-x"):
            raise RuntimeError("broken")
        with pytest.raises(SystemExit, match="elmo-x: error: killed"), errors_in_one_line("elmo-x", RuntimeError):
            raise RuntimeError("killed")
