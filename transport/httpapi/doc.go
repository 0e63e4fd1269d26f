// Package httpapi serves GraphQL over HTTP: POST /graphql with a JSON body, answered as
// application/graphql-response+json or application/json, whichever the Accept header
// prefers; application/json when it prefers neither.
//
// Checked before the executor is called: method (405), Accept (406), Content-Type (415),
// origin of a cookie (403), credential (401), size (413), well-formedness (400). Request
// errors (syntax, validation, limits, variables) have no data key; they are 400 in the
// new media type and 200 in the legacy one, as the specification requires. Once execution has
// begun the status is 200. Nothing of a body is ever repeated in an answer.
//
// Answers of queries are compressed where the client prefers that (Options.Compress). A mutation's answer never is,
// since it may show a credential.
//
// GET serves the WebSocket upgrade (Options.WebSocket) and, in development, GraphiQL.
// Queries are not served over GET, so no mutation can be, and no URL ever holds a document.
package httpapi
