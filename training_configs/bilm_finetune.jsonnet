// Fine-tunes a biLM on the text of a task for one epoch.
//
// paper: section A.1
// data:  lm/train*, lm/dev*: the text of a task
// score: the training prints the perplexity before and after
// see:   docs/language-model/train.md; as plain JSON, expanded/bilm_finetune.json
local environment = import 'lib/environment.libsonnet';

(import 'lib/bilm.libsonnet')(start=environment.bilm)
