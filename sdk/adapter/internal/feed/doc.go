// Package feed is the change feed of an adapter: the newest status of every operation, in the order of their changes.
package feed
