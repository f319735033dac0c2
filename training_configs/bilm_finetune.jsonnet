// Fine-tunes a biLM on the text of a task for one epoch (section A.1).
local environment = import 'lib/environment.libsonnet';

(import 'lib/bilm.libsonnet')(start=environment.bilm)
