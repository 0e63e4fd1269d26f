// Package logfile keeps the lines that one process prints in files of bounded size, so that a reader in another process
// of the machine finds each line once, by its number.
//
//	LOGS/PROCESS/0000000000000000001.log    lines 1 to 5,120, by the number of its first
//	LOGS/PROCESS/0000000000000005121.log    the lines from 5,121 on
//
// A file begins with the boot of the machine that wrote it. Then each line is one record: number, time in nanoseconds,
// stream, and the bytes as they were printed, up to the line's end. A line longer than MaxText is several records, all
// but the last of which are marked as parts.
//
// Numbers only rise. Rotation deletes the oldest file; what does not fit on a full disk has used its numbers; after a
// restart of the machine, which may lose what was not on the disk, the numbers go on Jump further. In each of these
// cases a reader sees a gap, and no number is ever used for two lines.
//
// The files may belong to the member whose process it is, which can write there what it likes. A reader takes nothing
// but regular files, never leaves the folder, and skips what is not a record.
package logfile
