"""The alternating highway LSTM of SRL (He et al. 2017)."""

from elmo_tasks.modules.highway_lstm.alternating_highway_lstm import AlternatingHighwayLstm

__all__ = ["AlternatingHighwayLstm"]
