// Package ent holds the storage schema (schema, written), the client Ent writes from it
// (generated/db) and the generator (entc.go). Verbs in service use the client openly inside their
// one transaction; nothing above them does.
package ent
