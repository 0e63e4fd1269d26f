// Package clienttest is a stand-in for the platform, for the tests of programs that are built on the client. It
// listens on a loopback port and speaks the public protocols for real: GraphQL over HTTP and graphql-transport-ws,
// with the error envelope, against the real SDL. Every document is parsed and validated against that SDL, variables
// are coerced by it, and answers are shaped by it, so that a program which requests what does not exist fails here
// as it would there. What the fields answer is up to the test: it is a stand-in, it has no rules, no database and
// no permissions, and proves nothing about the platform itself.
//
//	server := clienttest.New(t, "../../graph/schema/*.graphql")
//	server.Handle("app", func(call clienttest.Call) (any, error) {
//		if call.Args["slug"] != "hello" {
//			return nil, &clienttest.Fault{Code: "NOT_FOUND", Message: "there is no such app"}
//		}
//		return clienttest.Object{"slug": "hello", "displayName": "Hello"}, nil
//	})
//
// A non-null field that an answer leaves out gets the empty value of its type; a field that the type does not have
// is an error, so that a test's fixtures cannot drift from the SDL.
package clienttest
