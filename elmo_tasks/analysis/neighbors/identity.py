"""Of which biLM the vectors of an index are."""

from elmo_tasks.analysis.neighbors.files import DIGEST
from elmo_tasks.analysis.neighbors.index import NeighborIndex
from elmo_tasks.bilm.lstm.frozen import bilm_digest
from elmo_tasks.files.checksums import sha256_of
from elmo_tasks.vectors.elmo import Elmo
from elmo_tasks.vectors.pretrained import pretrained_files

__all__ = ["check_bilm", "digest_of"]


def digest_of(elmo: Elmo) -> str:
    """Of options and weights, as an index has it among its entries."""
    return bilm_digest(elmo.bilm.options, elmo.bilm.state_dict()).hex()


def check_bilm(index: NeighborIndex, elmo: Elmo, bilm: str) -> None:
    """
    # Parameters

    index
        The index.
    elmo
        The biLM of its queries.
    bilm
        Its name, folder or URL.

    # Raises

    `ValueError`
        If the index says that its vectors are those of another biLM, or of other options.
    """
    about = index.about
    if DIGEST in about:
        is_same = about[DIGEST] == digest_of(elmo)
    else:
        # Version 0.1.0 had these entries; an index that was built in Python there has none.
        is_same = "weights" not in about or _of_weights(bilm) == about["weights"]
    if not is_same:
        raise ValueError(
            f"a query must have the biLM of its index, but '{index.folder}' was made with "
            f"{about.get('bilm', 'one that it does not name')!r}, and '{bilm}' has other weights or options now: "
            "name the biLM of the index (--bilm), or build the index again with `allennlp "
            "elmo-neighbors index`"
        )


def _of_weights(bilm: str) -> str:
    return sha256_of(pretrained_files(bilm)[1])
