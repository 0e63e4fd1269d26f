package people

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

func TestOnlyWhomThePlatformCanHaveGivenHasAnAccount(t *testing.T) {
	t.Parallel()
	call := func(posix *adapter.PosixIdentity, id, project string) *adapter.Call {
		return &adapter.Call{Instance: adapter.Instance{ProjectID: "prj_own"},
			Requester: adapter.Requester{ID: id, ProjectID: project, Posix: posix}}
	}
	ada := adapter.PosixIdentity{Name: "ada", UID: 1000, GID: 1000}
	who, err := Of(call(&ada, "usr_1", ""))
	require.NoError(t, err)
	require.Equal(t, &Person{Name: "ada", UID: 1000, GID: 1000, ID: "usr_1", Account: "prj_own"}, who)
	who, err = Of(call(&ada, "usr_1", "prj_other"))
	require.NoError(t, err)
	require.Equal(t, "prj_other", who.Account, "a project that is attached to a shared control plane")
	who, err = Of(call(nil, "op_1", ""))
	require.NoError(t, err)
	require.Nil(t, who)

	for name, bad := range map[string]*adapter.Call{
		"root":            call(&adapter.PosixIdentity{Name: "ada", UID: 0, GID: 1000}, "usr_1", ""),
		"a system group":  call(&adapter.PosixIdentity{Name: "ada", UID: 1000, GID: 4}, "usr_1", ""),
		"beyond a member": call(&adapter.PosixIdentity{Name: "ada", UID: 60_000, GID: 60_000}, "usr_1", ""),
		"two fields":      call(&adapter.PosixIdentity{Name: "ada:x:0", UID: 1000, GID: 1000}, "usr_1", ""),
		"two lines":       call(&adapter.PosixIdentity{Name: "ada\nroot", UID: 1000, GID: 1000}, "usr_1", ""),
		"two principals":  call(&ada, "usr_1@x\nusr_2", ""),
		"an option":       call(&ada, "usr_1", "-h"),
	} {
		_, err := Of(bad)
		var refused adapter.ErrorBody
		require.ErrorAs(t, err, &refused, name)
		require.Equal(t, adapter.CodeInvalid, refused.Code, name)
	}
}

func TestFilesOfAJobAreThoseOfItsCluster(t *testing.T) {
	t.Parallel()
	require.Equal(t, "slurm-2k3b6e-7", OutputName("ins_01m8cexw9wft7tdm4d82k3b6e", "7"))
	require.Equal(t, "slurm-i-7", OutputName("i", "7"))
}
