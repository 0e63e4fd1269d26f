// Package contract holds the adapter contract v1.1 as Go types: what crosses the wire between the platform and an
// adapter, the rules that a message keeps, and the details of node tasks as an adapter writes them. It does no I/O.
//
// docs/adapter-contract/openapi.yaml is the contract; a test holds these types against it. Adapters use them by the
// names of package adapter.
package contract
