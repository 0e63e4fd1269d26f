// Package archtest holds the house to its plan. It parses every file of the module and checks what
// a reviewer would otherwise have to remember: which floor may import which, that the domain is
// pure, that no app's name has crept into the platform, that everything exported is documented.
//
// A rule is a function from the parsed tree to findings, so that each rule is itself tested on a
// small tree which breaks it. Exceptions are data, each with its reason, and an exception that no
// longer excuses anything is a finding too: the lists can only shrink by themselves.
//
// Files are read with go/parser and not with the go command: a test that runs the go command may
// be answered from the test cache after the imports have changed.
package archtest
