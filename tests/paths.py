"""Files and folders that tests read."""

from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
PACKAGE = CHECKOUT / "elmo_tasks"
FIXTURES = CHECKOUT / "fixtures"
TRAINING_CONFIGS = CHECKOUT / "training_configs"
# A biLM of 2 x 16 cells with random weights, and the included biLM with a softmax and its words.
TINY_BILM = FIXTURES / "bilm_tiny"
SHIPPED_BILM = PACKAGE / "pretrained" / "small-open"
# Outputs of the original bilm-tf and ELMoForManyLangs code.
REFERENCE = CHECKOUT / "tests" / "reference"


def bilm_files(folder: Path) -> tuple[Path, Path]:
    """Options and weights of a biLM in the public format."""
    return folder / "options.json", folder / "weights.hdf5"
