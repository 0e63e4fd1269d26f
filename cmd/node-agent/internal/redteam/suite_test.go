package redteam

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/oci"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/rootfs"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

const (
	// The test program's parts: the tries, and a service, both inside of a member.
	attackPart = "redteam-attack"
	servePart  = "redteam-serve"
	// aloneVariable says that this process has a network of its own.
	aloneVariable = "REDTEAM_ALONE"

	attackerID = "mem_0000000000000000000attacker"
	victimID   = "mem_00000000000000000000victim"
	nodeIP     = "10.88.0.1"
	service    = 9000
	secret     = "the victim's own"
	testRoots  = "/var/cache/app-platform/member-roots"
)

var testRoot string

func TestMain(m *testing.M) {
	memberinit.Dispatch(os.Args)
	switch {
	case len(os.Args) > 2 && os.Args[1] == attackPart:
		attack(os.Args[2])
		return
	case len(os.Args) > 1 && os.Args[1] == servePart:
		serveForEver()
		return
	case os.Geteuid() != 0: // every test says why it is skipped
	case os.Getenv(aloneVariable) == "":
		os.Exit(alone())
	default:
		version, err := rootfs.Store{Dir: testRoots, Link: true}.Current()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		testRoot = version.Path
	}
	os.Exit(m.Run())
}

// alone runs the tests in a network namespace and a mount namespace: the node's rules, routes and mounts are then those
// of no other package's tests.
func alone() int {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), aloneVariable+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	// Unshareflags, since it makes the mounts private.
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS,
		Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread()
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// serveForEver is the victim's service.
func serveForEver() {
	for _, address := range []string{"0.0.0.0:7000", "127.0.0.1:7001"} {
		listener, err := net.Listen("tcp4", address)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		go answer(listener)
	}
	select {}
}

func answer(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_ = conn.Close()
	}
}

func TestNothingOfTheNodeOrOfOthersIsReachedFromAMember(t *testing.T) {
	t.Parallel()
	for _, profile := range []oci.Profile{oci.Service, oci.Nesting} {
		t.Run(string(profile), func(t *testing.T) {
			g := newGround(t, profile)
			g.prepare()
			aim := target{
				Process: os.Getpid(), NodeAddress: nodeIP, OtherAddress: "100.64.0.2", Service: service, Open: 7000,
				Closed: 7001,
				Paths: []string{
					g.dir, filepath.Join(g.dir, "members"), filepath.Join(g.dir, "members", victimID, "fs",
						"scratch", "own"),
					testRoots, "/root/.ssh", "/var/lib/cloud/instance",
				},
				Volumes: []string{g.shared, g.local, filepath.Join(g.shared, victimVolume+"2"),
					filepath.Join(g.local, victimVolume+".img"), ownPath + "/own", readPath + "/own"},
			}
			argument, err := json.Marshal(aim)
			require.NoError(t, err)
			before := g.node()
			ended := g.run(g.attacker, "/scratch/redteam", attackPart, string(argument))
			require.Zero(t, ended.ExitCode, "%s", ended.Stderr)
			g.judge(profile, aim, ended.Stdout)
			require.Equal(t, before, g.node(), "the node is not as it was")
			still := g.run(g.victim, "cat", "/scratch/own")
			require.Equal(t, secret, string(still.Stdout))
			still = g.run(g.victim, "cat", ownPath+"/own", readPath+"/own")
			require.Equal(t, secret+secret, string(still.Stdout))
		})
	}
}

// prepare gives the victim something to lose, and leaves devices of the node where the attacker finds them.
func (g *ground) prepare() {
	g.t.Helper()
	require.NoError(g.t, g.victim.WriteFile(g.t.Context(),
		wire.File{Path: "/scratch/own", Mode: 0o644, Content: []byte(secret)}))
	_, err := g.victim.StartProcess(g.t.Context(), wire.ProcessSpec{Name: "serve",
		Command: []string{"/scratch/redteam", servePart}, Policy: memberinit.PolicyNever})
	require.NoError(g.t, err)
	require.Eventually(g.t, func() bool { // the node itself reaches its members
		conn, err := net.DialTimeout("tcp4", "100.64.0.2:7000", time.Second)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, 10*time.Second, 20*time.Millisecond)
	for _, path := range []string{ownPath, readPath} {
		require.NoError(g.t, g.victim.WriteFile(g.t.Context(),
			wire.File{Path: path + "/own", Mode: 0o644, Content: []byte(secret)}))
	}
	g.plant()
	scratch := filepath.Join(g.dir, "members", attackerID, "fs", "scratch")
	require.NoError(g.t, unix.Mknod(filepath.Join(scratch, "planted-block"), unix.S_IFBLK|0o666, int(unix.Mkdev(7, 7))))
	require.NoError(g.t, unix.Mknod(filepath.Join(scratch, "planted-char"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 1))))
	for _, name := range []string{"planted-block", "planted-char"} {
		require.NoError(g.t, os.Chmod(filepath.Join(scratch, name), 0o666)) // #nosec G302 -- a bait
	}
}

// judge wants of each try the error that its profile has for it.
func (g *ground) judge(profile oci.Profile, aim target, printed []byte) {
	g.t.Helper()
	got := make(map[string]result)
	for lines := json.NewDecoder(bytes.NewReader(printed)); ; {
		var one result
		err := lines.Decode(&one)
		if err == io.EOF {
			break
		}
		require.NoError(g.t, err)
		got[one.Name] = one
	}
	suite := tries(aim)
	g.t.Logf("%d tries", len(suite))
	require.GreaterOrEqual(g.t, len(suite), 111)
	for _, try := range suite {
		want := try.service
		if profile == oci.Nesting {
			want = try.nesting
		}
		one, ok := got[try.name]
		require.True(g.t, ok, "%s was not tried", try.name)
		if !slices.Contains(want, one.Errno) {
			g.t.Errorf("%s: %s (%v), and not one of %v", try.name, one.Errno, one.Text, want)
		}
	}
}

// node is what of the node the tries could change.
func (g *ground) node() map[string]string {
	g.t.Helper()
	seen := make(map[string]string)
	for _, path := range []string{
		"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hostname",
		"/proc/sys/kernel/sysrq",
		"/proc/sys/kernel/panic",
		"/proc/sys/vm/overcommit_memory", "/sys/kernel/mm/transparent_hugepage/enabled", "/proc/modules", "/proc/swaps",
		"/etc/passwd", "/etc/shadow",
	} {
		raw, err := os.ReadFile(path)
		if err == nil {
			seen[path] = fmt.Sprintf("%x", sha256.Sum256(raw))
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(g.t, err)
	for line := range strings.Lines(string(mounts)) {
		seen["mount "+line] = ""
	}
	rules, err := netlink.RouteList(nil, netlink.FAMILY_ALL)
	require.NoError(g.t, err)
	for _, route := range rules {
		seen["route "+route.String()] = ""
	}
	links, err := netlink.LinkList()
	require.NoError(g.t, err)
	for _, link := range links {
		seen["device "+link.Attrs().Name] = link.Attrs().HardwareAddr.String()
	}
	return seen
}

// A member that takes more than its share is ended alone. The controls are small: what is taken is given back at once.
func TestAMemberThatTakesMoreThanItsShareIsEndedAlone(t *testing.T) {
	t.Parallel()
	g := newGround(t, oci.Service)
	eats := g.run(g.attacker, "sh", "-c", "head -c 400m /dev/zero | tail -c 390m > /dev/null")
	require.NotZero(t, eats.ExitCode, "400 MiB fit into 256")
	little := g.run(g.victim, "sh", "-c", "head -c 40m /dev/zero | tail -c 30m > /dev/null")
	require.Zero(t, little.ExitCode, "%s", little.Stderr)
	forks := g.run(g.attacker, "sh", "-c",
		"for i in $(seq 200); do sleep 60 & done 2>&1; kill $(jobs -p) 2>/dev/null; true")
	require.Contains(t, string(forks.Stdout)+string(forks.Stderr), "fork")
	some := g.run(g.victim, "sh", "-c", "for i in $(seq 50); do sleep 60 & done")
	require.Zero(t, some.ExitCode, "%s", some.Stderr)
}

// A device of the member's own passes the walls: no driver answers a number that is kept free. That of another does
// not.
func TestAMemberOpensItsOwnDevicesAlone(t *testing.T) {
	t.Parallel()
	g := newGround(t, oci.Service)
	own := g.run(g.attacker, "sh", "-c", "exec 3<>/dev/nvidia0")
	require.Contains(t, string(own.Stderr), "No such device or address")
	other := g.run(g.attacker, "sh", "-c", "exec 3</dev/nvidia1")
	require.Contains(t, strings.ToLower(string(other.Stderr)), "no such file")
}
