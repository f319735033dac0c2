"""LSTMs and GRUs over packed sentences: AllenNLP's `lstm` and `gru`, trained faster on a CPU."""

from elmo_tasks.modules.recurrent.encoders import GruEncoder, LstmEncoder

__all__ = ["GruEncoder", "LstmEncoder"]
