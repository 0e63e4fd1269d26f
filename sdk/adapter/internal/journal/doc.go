// Package journal keeps the operations of an adapter on disk, so that a controller that is killed forgets nothing.
package journal
