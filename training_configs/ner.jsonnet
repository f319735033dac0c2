// NER without ELMo: the baseline of Table 1.
local ner = import 'lib/ner.libsonnet';

ner()
