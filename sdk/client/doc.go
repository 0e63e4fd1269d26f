// Package client is the platform's public API for Go programs outside of it: a typed GraphQL client that knows
// the error envelope, repeats only what may be repeated, and follows live feeds across reconnects.
//
//	c, err := client.New("https://gpu.example.com", client.Options{Token: os.Getenv("GPUAAS_TOKEN")})
//	launch, err := gql.LaunchInstance(ctx, c, gql.LaunchInstanceInput{…, IdempotencyKey: client.NewKey()})
//	op, err := c.WaitOperation(ctx, launch.LaunchInstance.Operation.Id, nil)
//
//	for event, err := range c.Timeline(ctx, launch.LaunchInstance.Instance.Id, "") { … }
//
// # Calls
//
// Every operation of operations/*.graphql is a function of the package generated/gql that takes a [Client]. A
// refusal is an [*Error] with the platform's code, correlation id and reasons:
//
//	if client.CodeOf(err) == client.CodeNotFound { … }
//
// An answer is read up to Options.MaxResponseBytes. A query, and a mutation whose input carries an idempotencyKey,
// is tried again when the platform is away or busy (no connection, 429, 502, 503, 504, UNAVAILABLE, RATE_LIMITED),
// at most Options.MaxAttempts times, after what Retry-After says or a growing, jittered delay. Other mutations are
// repeated only where they cannot have run: no connection was opened, or the answer was 429. Redirects
// are refused, so that a credential never follows one.
//
// # Feeds
//
// [Client.Timeline], [Client.ProjectActivity], [Client.OperationProgress] and [Client.NodeTasks] speak
// graphql-transport-ws, one socket a feed. A feed that breaks reconnects with growing, jittered delays and resumes
// after its last cursor; events that arrive twice are dropped, and a gap in an instance's numbering makes it resume.
// It ends with an error that another try cannot repair (UNAUTHENTICATED for close code 4401, FORBIDDEN for 4403,
// CURSOR_EXPIRED, …), when the context ends, or after Options.MaxDowntime without a connection.
// Options.OnConnect is called for each connection. A message may have up to 4 MiB.
package client
