// SQuAD with ELMo at the input and the output of the biGRU (Table 1).
(import 'lib/squad.libsonnet')(elmo_at=['input', 'output'])
