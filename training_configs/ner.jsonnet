// NER without ELMo: the baseline of Table 1.
(import 'lib/ner.libsonnet')()
