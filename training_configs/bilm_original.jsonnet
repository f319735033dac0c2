// A new biLM of the paper's size, trained like the authors'.
//
// paper: section 3.4, and the settings of bilm-tf: two weeks on three GPUs
// data:  lm/train*, lm/dev*; in the paper, the 1 Billion Word Benchmark
// score: perplexity 39.7 in the paper
// see:   docs/language-model/train.md; as plain JSON, expanded/bilm_original.json
(import 'lib/bilm.libsonnet')(size='original')
