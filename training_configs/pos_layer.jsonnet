// Parts of speech by a linear classifier on the layer that ELMO_TASKS_LAYER names, by default the first LSTM (Table 6).
(import 'lib/pos.libsonnet')()
