// A new biLM of the small size.
//
// paper: section 3.4, with 7 million weights instead of 94 million
// data:  lm/train*, lm/dev*: files with one tokenised sentence per line
// score: small-open has this size: elmo_tasks/pretrained/small-open/README.md
// see:   docs/language-model/train.md; as plain JSON, expanded/bilm.json
(import 'lib/bilm.libsonnet')(size='small')
