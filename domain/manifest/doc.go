// Package manifest holds the rules of an app's manifest: the document that says what an app consists of, what
// capacity it needs, how an instance is configured and what its actions are.
//
// Parse reads and lints a document; nothing that Parse accepts needs a second look. Compatible says whether
// allocations fit it. ValidateConfig, ApplyDefaults and ValidateAction hold an instance's configuration and the
// input of an action against the manifest's JSON Schemas. Every finding carries a code and the path of the
// offending field, in the form "components.1.key".
//
// All documents are bounded in size, depth and the length of their numbers before anything reads them. JSON
// Schemas are of draft 2020-12, may refer only to their own $defs, and may not be recursive: that bounds the work
// which a document can cause.
//
// The document's own shape is manifest.schema.json, which DocumentSchema gives out.
package manifest
