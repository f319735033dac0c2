"""
The one step of the build that setup.cfg cannot express: training_configs/ and fixtures/ stand at
the top of the checkout and are part of the package in a wheel, where `elmo_tasks.files.shipped`
finds them.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

CHECKOUT = Path(__file__).parent


class BuildWithData(build_py):
    """
    Copies the folders into the package, except in an editable installation, which reads them from
    the checkout.
    """

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        for name in ("training_configs", "fixtures"):
            target = Path(self.build_lib, "elmo_tasks", name)
            # A file of an earlier build must not stay.
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(CHECKOUT / name, target)


setup(cmdclass={"build_py": BuildWithData})
