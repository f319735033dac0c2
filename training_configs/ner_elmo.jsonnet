// NER with ELMo at the input (Table 1).
local ner = import 'lib/ner.libsonnet';

ner(elmo_at=['input'])
