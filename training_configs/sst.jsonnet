// Sentiment without ELMo: the baseline of Table 1.
local sst = import 'lib/sst.libsonnet';

sst()
