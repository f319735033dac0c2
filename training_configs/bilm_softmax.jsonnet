// Learns a softmax for a frozen biLM, such as the authors', published without one.
//
// paper: not in it; fine-tuning and perplexity need a softmax
// data:  lm/train*, lm/dev*: its words are those of this text
// score: perplexity 106.6 on Wikipedia for the softmax of small-open
// see:   docs/language-model/train.md; as plain JSON, expanded/bilm_softmax.json
local environment = import 'lib/environment.libsonnet';

(import 'lib/bilm.libsonnet')(start=environment.bilm, frozen=true)
