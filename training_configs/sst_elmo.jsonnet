// Sentiment with ELMo at the input and at the output of the lowest encoder (Table 1).
(import 'lib/sst.libsonnet')(elmo_at=['input', 'output'])
