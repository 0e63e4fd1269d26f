package sandbox_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

const memberRoot = "$GPUAAS_MEMBER_ROOT"

func TestPlacedFileIsWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, b bundle) {
		client := b.ensure(t)
		file := wire.File{Path: "/srv/deep/file", Mode: 0o640, MakeDirs: true}
		large := strings.Repeat("0123456789abcdef", 1<<16)
		require.NoError(t, client.Place(t.Context(), file, int64(len(large)), strings.NewReader(large)))
		require.NoError(t, client.Place(t.Context(), wire.File{Path: "/srv/empty", Mode: 0o600},
			0, strings.NewReader("")))
		broken := errors.New("broken")
		err := client.Place(t.Context(), file, 100, io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken)))
		require.ErrorIs(t, err, broken)
		err = client.Place(t.Context(), file, 100, strings.NewReader("too short"))
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		err = client.Place(t.Context(), wire.File{Path: "/srv/none/file"}, 1, strings.NewReader("x"))
		require.True(t, wire.HasCode(err, wire.CodePathInvalid), "%v", err)
		eventually(t, func() bool { // the init lets go of a draft when it sees that the connection ended
			result := runs(t, client, shell("tsk_look", "cd "+memberRoot+"/srv; ls -A . deep; stat -c %s:%a deep/file"))
			require.NoError(t, client.Ack(t.Context(), "tsk_look"))
			return string(result.Stdout) == ".:\ndeep\nempty\n\ndeep:\nfile\n1048576:640\n"
		}, "nothing but the whole files is there")
	})
}

func TestPlacedFileThatDoesNotFitIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, false)
	if b.Isolation().Mode != memberinit.ModeContainer {
		t.Skip("containers need root")
	}
	client := b.nesting(t)
	require.Zero(t, runs(t, client, shell("tsk_a", "mkdir /small && mount -t tmpfs -o size=1m none /small")).ExitCode)
	err := client.Place(t.Context(), wire.File{Path: "/small/file", Mode: 0o600}, 2<<20,
		iotest.ErrReader(os.ErrInvalid))
	require.True(t, wire.HasCode(err, wire.CodeDiskFull), "%v", err)
	require.Equal(t, "0\n", string(runs(t, client, shell("tsk_b", "ls -A /small | wc -l")).Stdout))
}
