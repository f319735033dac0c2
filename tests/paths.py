"""Every file and folder that tests read has its path here; `paths_test.py` walks them on every machine."""

from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
PACKAGE = CHECKOUT / "elmo_tasks"
FIXTURES = CHECKOUT / "fixtures"
TRAINING_CONFIGS = CHECKOUT / "training_configs"
# A biLM of 2 x 16 cells with random weights; one with a softmax and its words; the one that ships.
TINY_BILM = FIXTURES / "bilm_tiny"
WORDS_BILM = FIXTURES / "bilm_words"
SHIPPED_BILM = PACKAGE / "pretrained" / "small-open"
# Files of finished runs of the plan, and of the tables that are of the biLM alone.
RUN_RESULTS = CHECKOUT / "results" / "runs"
BILM_RESULTS = RUN_RESULTS / "bilm"
# Result files of earlier runs, as examples that stay.
# Outputs of the original code of bilm-tf and ELMoForManyLangs.
REFERENCE = CHECKOUT / "tests" / "reference"


def bilm_files(folder: Path) -> tuple[Path, Path]:
    """Options and weights of a biLM in the public format."""
    return folder / "options.json", folder / "weights.hdf5"
