// Package metrics measures what this node's members use, and keeps a series of bounded length for each on the disk.
//
//	cgroup, network namespace, vendor's tool ──every 10 s──▶ Recorder ──▶ a file of each member: Recorder.Series
//	                                                            └──────▶ the newest samples: Recorder.News ▶ heartbeat
//
// A file has two rings of fixed places, an hour of samples and a week of averages and maxima, so that it never grows
// beyond [FileBytes]. A place has its time and a checksum: one that was not written, is of an earlier turn or was torn
// by a power cut is a gap. Averages are computed from the samples in the file, so that a restart of the agent loses no
// more than the seconds in which it was away. The file of a member that was removed stays until its points are a week
// old.
package metrics
