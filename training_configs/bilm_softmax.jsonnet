// Learns a softmax over the words of a text for a frozen biLM, such as the authors', which were published without one.
local environment = import 'lib/environment.libsonnet';

(import 'lib/bilm.libsonnet')(start=environment.bilm, frozen=true)
