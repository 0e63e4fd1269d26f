package oci

import (
	"slices"

	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// Profile is what a member may do inside of its walls.
type Profile string

// The profiles.
const (
	// Service is for daemons: no new privileges, no mounts, no namespaces of its own.
	Service Profile = "SERVICE"
	// Nesting is for apps that run containers inside of the member.
	Nesting Profile = "NESTING"
)

// Known reports whether there is such a profile.
func (p Profile) Known() bool { return p == Service || p == Nesting }

// serviceCapabilities are Docker's less CAP_NET_RAW and CAP_MKNOD, which daemons do without.
var serviceCapabilities = []string{
	"CAP_AUDIT_WRITE", "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_NET_BIND_SERVICE",
	"CAP_SETFCAP", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID", "CAP_SYS_CHROOT",
}

// nestingCapabilities come on top of them: for mounts and namespaces, and for networks of containers inside. All of
// them count in the member's own user namespace only.
var nestingCapabilities = []string{"CAP_NET_ADMIN", "CAP_SYS_ADMIN"}

// capabilities lists those of the profile.
func (p Profile) capabilities() []string {
	if p == Nesting {
		return append(slices.Clone(serviceCapabilities), nestingCapabilities...)
	}
	return slices.Clone(serviceCapabilities)
}

// The system calls by which the profiles differ from moby's.
var (
	// numa is refused by moby without CAP_SYS_NICE; daemons that place their memory want it, for themselves alone.
	numa = []string{"get_mempolicy", "mbind", "set_mempolicy", "set_mempolicy_home_node"}
	// containers is what a container runtime in a member needs.
	containers = []string{"add_key", "keyctl", "pivot_root", "request_key"}
	// refused is what CAP_SYS_ADMIN would open, though it reaches beyond a member or has no use in one.
	refused = []string{"bpf", "fanotify_init", "lookup_dcookie", "perf_event_open", "quotactl", "quotactl_fd", "syslog"}
)

// filter gives the profile's filter of system calls: moby's for these capabilities, with the differences.
func (p Profile) filter(spec *specs.Spec) (*specs.LinuxSeccomp, error) {
	filter, err := seccomp.GetDefaultProfile(spec)
	if err != nil {
		return nil, err
	}
	var kept []specs.LinuxSyscall
	for _, rule := range filter.Syscalls {
		rule.Names = slices.DeleteFunc(slices.Clone(rule.Names), func(name string) bool {
			return slices.Contains(refused, name)
		})
		if len(rule.Names) > 0 {
			kept = append(kept, rule)
		}
	}
	opened := slices.Clone(numa)
	if p == Nesting {
		opened = append(opened, containers...)
	}
	filter.Syscalls = append(kept, specs.LinuxSyscall{Names: opened, Action: specs.ActAllow})
	return filter, nil
}

// What of /proc and /sys a service member does not see, or cannot change. The user namespace is the boundary: these
// protect the node's state in files that the kernel shows without a check of their owner.
var (
	masked = []string{
		"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
		"/proc/sched_debug",
		"/proc/scsi", "/proc/timer_list", "/proc/timer_stats", "/sys/devices/virtual/powercap", "/sys/firmware",
	}
	readonly = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)

// paths gives what is masked and what is read-only. A nesting member mounts /proc for its containers, which the kernel
// only allows where nothing covers its own.
func (p Profile) paths() (mask, ro []string) {
	if p == Nesting {
		return []string{"/sys/firmware"}, nil
	}
	return slices.Clone(masked), slices.Clone(readonly)
}
