// Package conformance exercises any adapter, in any language, over HTTP alone, as the platform
// would: it signs requests, serves the key set and the public API, really carries out the node
// tasks that the adapter requests, and checks the effects. Where it may start the adapter itself,
// it also kills it in the middle of its work.
//
//	report, err := conformance.Run(ctx, conformance.Options{Name: "my-adapter", URL: "http://127.0.0.1:9100"})
//
// Each [Clause] is one rule of the contract with a stable id. A clause passes, fails, is skipped
// because it does not apply (the reason states why), or was not run because the suite lacked the
// means; the last two never count as passed. Every wait is bounded by [Bounds], which the report
// prints.
//
// The [Report] has a digest over what was tested and how each clause ended, without times and ids of
// one run: the same build of an adapter that behaves in the same way has the same digest.
package conformance
