// Package pgtest gives every test a real PostgreSQL database of its own.
//
// One throwaway server serves all test processes of a user, also those of parallel `go test` runs: the first process
// starts it, the others attach, and a small watchdog (watchdog.sh, holding no terminal and no pipe) stops it and
// removes its files some seconds after the last process has ended, in whatever way. Processes are counted by shared
// file locks, which the kernel drops by itself.
//
// The migrations run once per content, into a template database named by their hash; a test's database is a file copy
// of it (about 20 ms) and is dropped with the test. Databases of killed test processes are dropped by the next process:
// each process marks its names with a number whose advisory lock it holds as long as it lives.
package pgtest
