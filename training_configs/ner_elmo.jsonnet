// NER with ELMo at the input (Table 1).
(import 'lib/ner.libsonnet')(elmo_at=['input'])
