// A new biLM, trained as in the paper: two weeks on the paper's text and GPUs.
(import 'lib/bilm.libsonnet')(size='original')
