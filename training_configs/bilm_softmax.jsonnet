// Learns a softmax of the words of a text for a biLM that keeps its weights, as those of the authors, which have none.
local environment = import 'lib/environment.libsonnet';

(import 'lib/bilm.libsonnet')(start=environment.bilm, frozen=true)
