package sandbox_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// container makes a root of the member's own programs and runs it by podman, without networks and control groups of its
// own.
const container = `set -e
export HOME=/root XDG_RUNTIME_DIR=/run
mkdir -p /etc/containers /scratch/oci; cd /scratch
printf '[storage]\ndriver = "overlay"\ngraphroot = "/scratch/oci"\nrunroot = "/run/oci/storage"\n' > /etc/containers/storage.conf
printf '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]\nlog_driver = "k8s-file"\n[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "none"\nruntime = "crun"\n' > /etc/containers/containers.conf
mkdir -p r/bin r/lib64 r/proc r/sys r/dev r/tmp r/etc r/run
for b in sh id; do cp /bin/$b r/bin/; ldd /bin/$b | grep -o '/[^ ]*' | while read -r l; do mkdir -p r$(dirname $l); cp -n $l r$l; done; done
printf 'root:x:0:0::/:/bin/sh\n' > r/etc/passwd
podman run --rm --cgroups=disabled --network=host --security-opt=no-new-privileges --rootfs /scratch/r /bin/sh -c 'id -u; echo from a container'`

func TestANestingMemberRunsContainers(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("containers need root")
	}
	if _, err := exec.LookPath("podman"); err != nil {
		t.Skip("podman is not installed")
	}
	b := setup(t, false)
	result := runs(t, b.nesting(t), shell("tsk_a", container))
	require.Zero(t, result.ExitCode, "%s", result.Stderr)
	require.Equal(t, "0\nfrom a container\n", string(result.Stdout))
}

func TestAServiceMemberRunsNone(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("containers need root")
	}
	b := setup(t, false)
	result := runs(t, b.ensure(t), shell("tsk_a",
		"unshare --mount true; unshare --user true; mount -t tmpfs none /mnt; echo $?"))
	require.Equal(t, "32\n", string(result.Stdout), "%s", result.Stderr)
}
