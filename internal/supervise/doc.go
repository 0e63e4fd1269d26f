// Package supervise keeps long-lived child programs running and ends them in order.
//
// A Child is one program: started, restarted by policy with a growing pause or on demand, stopped by a signal and
// killed when it does not stop. Its output goes through one pipe into a bounded log. Where the process comes into being
// is the Spawner's business: Local makes a child of this process in a process group of its own (so that Ctrl-C at the
// terminal reaches only the supervisor) which the kernel kills when the supervisor dies; package lab has one for local
// nodes.
//
// A Stack is the order of things that were brought up: Close takes them down last first.
package supervise
