// Package e2e holds the end-to-end tests: the built programs, a real database, real nodes in
// namespaces, the reference apps as they ship, driven as users drive them. It has no code of its own.
package e2e
