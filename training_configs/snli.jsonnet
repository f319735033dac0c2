// Entailment without ELMo: the baseline of Table 1.
(import 'lib/snli.libsonnet')()
