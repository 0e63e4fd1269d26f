// Package redteam is a suite of tests alone: as root of a member, in both profiles, it tries what must not work, and
// wants each try's own error and a node that is as it was. What the tries could harm is never shown to work: the only
// controls are those of the network, in namespaces without a way out.
package redteam
