// Package transport serves GraphQL over HTTP and over WebSocket, on gqlgen's exported
// executor. It knows nothing of the platform's schema.
//
// The stock transports of the executor do not fit: they read bodies without a bound and
// echo them in errors, answer request errors with the wrong status, close sockets with
// the wrong codes, can be made to leak descriptors before authentication, and encode a
// message once per subscriber. The parts here:
//
//	transport          Engine (guard, document cache, execution, error envelope), credentials,
//	                   correlation ids, and the seam through which a feed serves subscriptions
//	transport/guard    bounds a document before anything expands it
//	transport/compress br and gzip for answers, where a request prefers them
//	transport/httpapi  POST /graphql, as GraphQL over HTTP asks
//	transport/wsapi    GET /graphql, sub-protocol graphql-transport-ws
//
// A request passes: size and media type, credential (the caller's Authenticate), lexical
// guard, parser, expansion guard, validation, cost with the request's variables,
// execution. Nothing after a refusal runs.
package transport
