// Package wire holds small tools for what crosses the wire: JSON in one form, bounded texts, ids.
package wire
