// Sentiment with ELMo at the input and at the output of the lowest encoder (Table 1).
local sst = import 'lib/sst.libsonnet';

sst(elmo_at=['input', 'output'])
