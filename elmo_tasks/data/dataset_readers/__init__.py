"""Dataset readers, one for each task."""

from elmo_tasks.data.dataset_readers.coref_reader import CorefReader
from elmo_tasks.data.dataset_readers.lm_reader import LmReader
from elmo_tasks.data.dataset_readers.ner_reader import NerReader
from elmo_tasks.data.dataset_readers.pos_reader import PosReader
from elmo_tasks.data.dataset_readers.snli_reader import SnliReader
from elmo_tasks.data.dataset_readers.squad_reader import SquadReader
from elmo_tasks.data.dataset_readers.srl_reader import SrlReader
from elmo_tasks.data.dataset_readers.sst_reader import SstReader

__all__ = ["CorefReader", "LmReader", "NerReader", "PosReader", "SnliReader", "SquadReader", "SrlReader", "SstReader"]
