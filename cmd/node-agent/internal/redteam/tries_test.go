package redteam

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// target is what of the node, and of another member, the tries go for.
type target struct {
	// Process is one of the node's.
	Process int
	// Paths are files of the node and of the other member.
	Paths []string
	// Volumes are where the node keeps volumes, and the other member's.
	Volumes []string
	// NodeAddress has services of the node at Service. OtherAddress has a service of the other member at Open, and one
	// that listens on that member's loopback at Closed.
	NodeAddress, OtherAddress string
	Service, Open, Closed     int
}

// result is what became of a try. Errno is 0 when it worked.
type result struct {
	Name  string
	Errno syscall.Errno
	Text  string
}

// try is something that must not work: in a service member, and in a nesting one, it must end with one of these.
type try struct {
	name             string
	do               func(t target) error
	service, nesting []syscall.Errno
}

var (
	denied  = []syscall.Errno{unix.EPERM}
	noWrite = []syscall.Errno{unix.EACCES, unix.EROFS, unix.EPERM, unix.ENOENT}
	absent  = []syscall.Errno{unix.ENOENT}
	shut    = []syscall.Errno{unix.ECONNREFUSED, unix.EHOSTUNREACH}
	open    = []syscall.Errno{0} // what the nesting profile is for
)

// both wants the same of both profiles.
func both(name string, want []syscall.Errno, do func(t target) error) try {
	return try{name, do, want, want}
}

// number calls the kernel by number.
func number(nr uintptr, args ...uintptr) func(target) error {
	return func(target) error {
		var a [6]uintptr
		copy(a[:], args)
		if _, _, errno := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
			return errno
		}
		return nil
	}
}

func opens(path string, flags int) func(target) error {
	return func(target) error {
		file, err := os.OpenFile(path, flags, 0)
		if err == nil {
			err = file.Close()
		}
		return err
	}
}

func makes(mode uint32, major, minor uint32, dir string) func(target) error {
	return func(target) error {
		path := filepath.Join(dir, "made")
		err := unix.Mknod(path, mode|0o600, int(unix.Mkdev(major, minor))) // #nosec G115 -- small numbers
		if err == nil {
			_ = os.Remove(path)
		}
		return err
	}
}

func reads(path string) error {
	if entries, err := os.ReadDir(path); err == nil {
		if len(entries) == 0 {
			return unix.ENOENT
		}
		return nil
	}
	_, err := os.ReadFile(path)
	return err
}

func connects(address func(t target) string) func(target) error {
	return func(t target) error {
		conn, err := net.DialTimeout("tcp4", address(t), 3*time.Second)
		if err == nil {
			err = conn.Close()
		}
		return err
	}
}

func at(host string, port int) string { return fmt.Sprintf("%s:%d", host, port) }

var text = []byte("redteam\x00")

func pointer(b []byte) uintptr { return uintptr(unsafe.Pointer(&b[0])) }

// tries is the suite.
func tries(t target) []try {
	all := []try{
		both("mknod character 1:1 (memory)", denied, makes(unix.S_IFCHR, 1, 1, "/scratch")),
		both("mknod character 10:237 (loop control)", denied, makes(unix.S_IFCHR, 10, 237, "/scratch")),
		both("mknod another member's device", denied, makes(unix.S_IFCHR, 60, 1, "/scratch")),
	}
	for _, dir := range []string{"/root", "/scratch", "/dev", "/tmp"} {
		all = append(all, both("mknod block 7:7 in "+dir, denied, makes(unix.S_IFBLK, 7, 7, dir)))
	}
	for _, path := range []string{
		"/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/sys/kernel/modprobe", "/proc/sys/vm/drop_caches",
		"/proc/sys/fs/binfmt_misc/register", "/proc/sys/kernel/sysrq", "/proc/irq/default_smp_affinity",
		"/proc/sys/kernel/panic",
		"/proc/sys/vm/overcommit_memory", "/sys/kernel/uevent_helper", "/sys/power/state",
		"/sys/block/vda/queue/scheduler",
		"/sys/module/kvm/parameters/halt_poll_ns", "/sys/kernel/mm/transparent_hugepage/enabled",
		"/sys/fs/cgroup/memory/memory.limit_in_bytes",
	} {
		all = append(all, both("write "+path, noWrite, opens(path, os.O_WRONLY)))
	}
	for _, path := range []string{"/dev/vda", "/dev/sda", "/dev/kmsg", "/dev/mem", "/dev/kvm", "/dev/loop0"} {
		all = append(all, both("open "+path, absent, opens(path, os.O_RDONLY)))
	}
	all = append(all,
		both("open /proc/kcore", append(noWrite, unix.ENXIO), opens("/proc/kcore", os.O_RDONLY)),
		both("open a block device that the node left in /scratch", append(denied, unix.EACCES),
			opens("/scratch/planted-block", os.O_RDONLY)),
		both("open a character device that the node left in /scratch", append(denied, unix.EACCES),
			opens("/scratch/planted-char", os.O_RDONLY)),
		both("open another member's GPU", absent, opens("/dev/nvidia1", os.O_RDWR)),
		both("/etc/shadow has a password", []syscall.Errno{unix.ENOENT}, func(target) error {
			return passwords("/etc/shadow")
		}),
	)
	for _, path := range append([]string{"/etc/ssh/ssh_host_rsa_key", "/etc/ssh/ssh_host_ed25519_key",
		"/etc/munge/munge.key", "/boot", "/lost+found"}, t.Paths...) {
		all = append(all, both("the node's "+path, append(absent, unix.EACCES), func(target) error {
			return reads(path)
		}))
	}
	return append(append(append(append(all, processes()...), kernel()...), network()...), volumes(t)...)
}

// passwords fails unless an account has one.
func passwords(path string) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return unix.ENOENT
	}
	for line := range strings.Lines(string(raw)) {
		if fields := strings.Split(line, ":"); len(fields) > 1 && strings.HasPrefix(fields[1], "$") {
			return nil
		}
	}
	return unix.ENOENT
}

// processes are tries at the node's processes, which have no number in the member.
func processes() []try {
	gone := []syscall.Errno{unix.ESRCH, unix.EPERM}
	return []try{
		both("kill a process of the node", gone, func(t target) error { return unix.Kill(t.Process, 0) }),
		both("trace a process of the node", gone, func(t target) error {
			return number(unix.SYS_PTRACE, unix.PTRACE_ATTACH, uintptr(t.Process))(t) // #nosec G115 -- a process number
		}),
		both("read a process of the node", append(gone, unix.EINVAL), func(t target) error {
			buffer := make([]byte, 8)
			local := []unix.Iovec{{Base: &buffer[0], Len: 8}}
			_, err := unix.ProcessVMReadv(t.Process, local, []unix.RemoteIovec{{Base: 0x400000, Len: 8}}, 0)
			return err
		}),
		both("see a process of the node", absent, func(t target) error {
			_, err := os.Stat(fmt.Sprintf("/proc/%d/stat", t.Process))
			return err
		}),
		both("open a process of the node", append(gone, unix.EINVAL), func(t target) error {
			fd, err := unix.PidfdOpen(t.Process, 0)
			if err == nil {
				err = unix.Close(fd)
			}
			return err
		}),
		both("enter the first process's namespaces", append(denied, unix.EINVAL), func(target) error {
			file, err := os.Open("/proc/1/ns/user")
			if err != nil {
				return err
			}
			defer file.Close()
			return unix.Setns(int(file.Fd()), unix.CLONE_NEWUSER)
		}),
	}
}

// kernel are tries at the kernel that all members share. Each has arguments that would do nothing if it worked.
func kernel() []try {
	const bad = 0xdead
	buffer := make([]byte, 256)
	all := []try{
		both("init_module", denied, number(unix.SYS_INIT_MODULE, 0, 0, pointer(text))),
		both("finit_module", denied, number(unix.SYS_FINIT_MODULE, ^uintptr(0), pointer(text), 0)),
		both("delete_module", denied, number(unix.SYS_DELETE_MODULE, pointer(text), 0)),
		both("kexec_load", denied, number(unix.SYS_KEXEC_LOAD, 0, 0, 0, 0)),
		both("reboot", denied, number(unix.SYS_REBOOT, bad, bad, bad, 0)),
		both("swapon", denied, number(unix.SYS_SWAPON, pointer(text), 0)),
		both("bpf", denied, number(unix.SYS_BPF, 0, 0, 0)),
		both("perf_event_open", denied, number(unix.SYS_PERF_EVENT_OPEN, 0, 0, ^uintptr(0), ^uintptr(0), 0)),
		both("read the kernel's log", denied, number(unix.SYS_SYSLOG, 3, pointer(buffer), 64)),
		both("userfaultfd", denied, number(unix.SYS_USERFAULTFD, 0)),
		both("io_uring_setup", denied, number(unix.SYS_IO_URING_SETUP, 1, pointer(buffer))),
		both("open_by_handle_at", denied, number(unix.SYS_OPEN_BY_HANDLE_AT, ^uintptr(99), 0, 0)),
		both("acct", denied, number(unix.SYS_ACCT, 0)),
		both("quotactl", denied, number(unix.SYS_QUOTACTL, 0, 0, 0, 0)),
		both("fanotify_init", denied, number(unix.SYS_FANOTIFY_INIT, 0, 0)),
		both("lookup_dcookie", append(denied, unix.ENOSYS), number(unix.SYS_LOOKUP_DCOOKIE, 0, 0, 0)),
		both("settimeofday", denied, number(unix.SYS_SETTIMEOFDAY, pointer(make([]byte, 16)), 0)),
		both("kcmp", append(denied, unix.ESRCH), number(unix.SYS_KCMP, 1, bad, 0, 0, 0)),
		{"keyctl", number(unix.SYS_KEYCTL, 0, ^uintptr(2), 0), denied, open},
		{"new user namespace", func(target) error { return ran("unshare", "-Ur", "true") }, denied, open},
		{"mount a tmpfs", func(target) error {
			err := unix.Mount("redteam", "/mnt", "tmpfs", 0, "")
			if err == nil {
				err = unix.Unmount("/mnt", 0)
			}
			return err
		}, denied, open},
		{"take the mask off /proc/keys", func(target) error { return unix.Unmount("/proc/keys", 0) }, denied,
			[]syscall.Errno{unix.EINVAL, 0}},
		{"make /proc/sys writable", func(target) error {
			return unix.Mount("", "/proc/sys", "", unix.MS_REMOUNT|unix.MS_BIND, "")
		}, denied, []syscall.Errno{unix.EINVAL, unix.EPERM, 0}},
		both("write core_pattern after that", noWrite, opens("/proc/sys/kernel/core_pattern", os.O_WRONLY)),
		both("mount the disk", append(denied, unix.ENOENT, unix.ENOTBLK, unix.EACCES), func(target) error {
			return unix.Mount("/dev/vda", "/mnt", "ext4", unix.MS_RDONLY, "")
		}),
		both("chroot out of the member", absent, func(t target) error { return reads("/proc/1/root/work") }),
	}
	for name, family := range map[string][3]int{
		"AF_VSOCK": {unix.AF_VSOCK, unix.SOCK_STREAM, 0}, "AF_ALG": {unix.AF_ALG, unix.SOCK_SEQPACKET, 0},
		"AF_PACKET": {unix.AF_PACKET, unix.SOCK_RAW, 0x300}, "raw IP": {unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP},
	} {
		all = append(all, both("socket "+name, append(denied, unix.EAFNOSUPPORT), func(target) error {
			fd, err := unix.Socket(family[0], family[1], family[2])
			if err == nil {
				err = unix.Close(fd)
			}
			return err
		}))
	}
	if unix.SYS_IOPL > 0 {
		all = append(all, both("iopl", append(denied, unix.ENOSYS), number(unix.SYS_IOPL, 3)))
	}
	return all
}

// ran runs a command, and fails with EPERM when that does.
func ran(command ...string) error {
	if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", unix.EPERM, out)
	}
	return nil
}

func network() []try {
	return []try{
		both("the node's loopback service", shut, connects(func(t target) string {
			return at("127.0.0.1", t.Service)
		})),
		both("the node's service by its address", shut,
			connects(func(t target) string { return at(t.NodeAddress, t.Service) })),
		both("the node's service by the gateway", shut,
			connects(func(t target) string { return at("169.254.1.1", t.Service) })),
		both("the cloud's metadata", shut, connects(func(target) string { return "169.254.169.254:80" })),
		both("another link-local address", shut, connects(func(target) string { return "169.254.0.1:80" })),
		both("another member's open port", shut, connects(func(t target) string { return at(t.OtherAddress, t.Open) })),
		both("another member's loopback", shut, connects(func(t target) string {
			return at(t.OtherAddress, t.Closed)
		})),
		{"a route of its own", func(target) error {
			return ran("ip", "route", "add", "169.254.169.254/32", "dev", "eth0")
		},
			denied, open},
		{"an address of its own", func(t target) error {
			return ran("ip", "addr", "add", "100.64.0.77/32", "dev", "eth0")
		},
			denied, open},
		both("the cloud's metadata after that", append(shut, unix.ETIMEDOUT),
			connects(func(target) string { return "169.254.169.254:80" })),
		both("an abstract socket of the node", append(shut, unix.ENOENT), func(target) error {
			conn, err := net.Dial("unix", "@redteam-node")
			if err == nil {
				err = conn.Close()
			}
			return err
		}),
	}
}

// attack does every try and prints what became of each.
func attack(argument string) {
	var t target
	if err := json.Unmarshal([]byte(argument), &t); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	out := json.NewEncoder(os.Stdout)
	for _, try := range tries(t) {
		got := result{Name: try.name}
		if err := try.do(t); err != nil {
			got.Text = err.Error()
			var timeout net.Error
			switch {
			case errors.As(err, &got.Errno):
			case errors.As(err, &timeout) && timeout.Timeout():
				got.Errno = unix.ETIMEDOUT
			default:
				got.Errno = unix.EIO
			}
		}
		_ = out.Encode(got)
	}
}
