// Package patience decides how long operations wait for their adapters: a moment in hand after the dispatch, where an
// adapter mostly ends such operations at once, and pauses between polls that grow with how many poll the same adapter.
package patience
