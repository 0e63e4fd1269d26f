// Package api is how an adapter calls the platform's public API: with a token that is narrowed to one task and renewed
// before its end, for node tasks, reports, runtime secrets and every function of sdk/client/generated/gql.
package api
