package oci

import (
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// Rlimits raises the limits that GPU programs need, where the agent may: open files, and memory that a fabric locks.
func Rlimits() []specs.POSIXRlimit {
	if !slices.Contains(capabilities(), unix.CAP_SYS_RESOURCE) {
		return nil
	}
	const files = 1 << 20
	return []specs.POSIXRlimit{
		{Type: "RLIMIT_NOFILE", Soft: 1024, Hard: files},
		{Type: "RLIMIT_MEMLOCK", Soft: unix.RLIM_INFINITY, Hard: unix.RLIM_INFINITY},
	}
}

// capabilities lists those that the agent has.
func capabilities() (held []int) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&header, &data[0]) != nil {
		return nil
	}
	for word, part := range data {
		for bit := range 32 {
			if part.Effective&(1<<bit) != 0 {
				held = append(held, word*32+bit)
			}
		}
	}
	return held
}
