// A new biLM as the paper trains it: two weeks on its text and GPUs.
(import 'lib/bilm.libsonnet')(size='original')
