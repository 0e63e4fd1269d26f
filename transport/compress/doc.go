// Package compress sends answers in br or gzip to clients that prefer that.
//
// Answers are whole in memory before a byte of them is sent, so an encoder works for the time of its work alone: it
// never waits for a client, and a client that reads slowly, or goes away, holds none. A Pool has a fixed number of
// encoders; when all are at work an answer goes out plain. It also does when it is short, and when compressing it
// saves nothing.
//
// The caller decides what may be compressed: the length of a compressed answer reveals something of its content, so an
// answer that shows a credential is sent with Plain.
package compress
