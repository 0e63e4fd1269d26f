// Package adapter is what the author of an app adapter builds on: the wire types of the adapter contract v1.1, the
// request signature, and a server kit that implements every route.
//
// # Its parts
//
// The package itself has names only. What they name is in three parts, each of which can be read alone:
//
//   - contract: the types of the wire and their rules;
//   - sign: the signature of requests;
//   - kit: the server, with operation, which runs what was dispatched, and api, by which it calls the platform.
//
// An adapter needs no import but this one. Everything that was ever exported here stays; a test compares it with a
// listing.
//
// # The two sides
//
// The platform owns what an operation is: its identity, its requester, its deadline, its audit. The adapter owns
// what it means: how this one app boots, joins, drains and leaves. They speak HTTP and JSON, described by
// docs/adapter-contract/openapi.yaml; this package is a convenience over that document, never a second source of truth.
//
//	platform ──PUT /v1/operations/{id}──▶ Kit: verify, compare, journal, 202
//	                                      └▶ App.Operations[kind](ctx, *Run)
//	                                           Run.Do ──GraphQL runNodeTask──▶ platform ──▶ node
//	                                           Run.Progress ──GraphQL reportOperation──▶ platform
//	platform ──GET /v1/operations?after=…&wait=20──▶ every status that changed since the cursor
//
// # What the kit promises the platform
//
// Every request is verified: an EdDSA JWT bound to this adapter's name, the method, the path and the SHA-256 of the
// body (see [Verifier]). A dispatch is idempotent by the hash of its immutable specification ([Dispatch.SpecHash]) and
// fenced by its attempt. It is on disk before it is answered, so a controller that is killed and started again resumes
// what was unfinished and repeats nothing: the idempotency keys of a run's node tasks consist of operation, attempt,
// member and step, and what a step sends is journalled before it is sent.
//
// An operation that is dispatched again with force starts again: the context of the running function ends, the function
// must undo nothing, and it is called again with [Run.Force]. Node tasks on nodes that cannot be reached then fail at
// once (see [IsUnreachable]).
//
// # What the author writes
//
// An [App]: its description, one function per operation kind, one per action, and one that observes. A function
// receives a [Run] and returns nil when the app's own truth is reached. It must be written as a sequence of named,
// idempotent steps: after a crash it runs again from its first line, and finished steps return their old results at
// once.
//
// What a step needs to know beyond node tasks it reads from the public API: every function of
// sdk/client/generated/gql takes [Run.Client], and a refusal is a *client.Error of sdk/client.
package adapter
