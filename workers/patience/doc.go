// Package patience says how long operations wait for their adapters: a moment in hand after the dispatch, where an
// adapter mostly ends such at once, and pauses between questions that grow with how many ask the same adapter.
package patience
