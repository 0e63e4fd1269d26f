// Package kit serves the adapter contract by HTTP for some apps. Each request is verified, checked against the app's
// description and schemas, and handed to the author's functions: operations by package operation, actions, plans,
// observations and usage directly, with a [Call].
package kit
