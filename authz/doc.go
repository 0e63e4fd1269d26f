// Package authz answers one question: may this actor use this permission key in this scope?
//
// Permission keys are a catalogue (keys.go); a verb requires a key and never reads a role. Casbin decides which role
// holds which key: model.conf and policy.csv are embedded, evaluated once for every role and key, and compiled into bit
// masks, because Casbin scans every row on every decision. Who holds which role in which scope is in rows of the
// database: NewActor folds a caller's live bindings into an Actor, whose decisions then take two map lookups and
// allocate nothing. The compiled table is printed in testdata/roles.golden.
//
// Three scopes nest: platform, tenant, project. A machine is a subject too, with a ceiling of its own in the
// policy: a service account and an operation's token hold an explicit list of keys below their ceiling and never
// leave their project, an operation's token is confined to one instance besides, and a node to itself.
//
// An object that the actor may not know of is NOT_FOUND, the same as one that does not exist; only an actor that can
// read something in the object's scope receives FORBIDDEN with the key that it lacks.
package authz
