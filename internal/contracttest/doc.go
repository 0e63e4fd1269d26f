// Package contracttest keeps the public contract: the SDL is complete and follows its own
// conventions, its published copy is the one in force, and no change of it breaks a client that
// was written against the first version.
//
// A deliberate breaking change takes a new folder beside docs/api/v1, with the endpoint that serves
// it; the old one is never edited.
package contracttest
