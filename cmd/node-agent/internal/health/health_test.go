package health

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
	"github.com/gpuaas/app-platform/sdk/exectest"
)

func write(t *testing.T, dir, name, text string, mode os.FileMode) {
	t.Helper()
	path := filepath.Join(dir, name)
	exectest.Write(t, path, text)
	require.NoError(t, os.Chmod(path, mode))
}

func TestAnOperatorsChecksAreMonitoringPlugins(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, script := range map[string]string{
		"a-good": "echo fine; echo more", "b-warns": "echo soon; exit 1", "c-bad": "echo broken >&2; exit 2",
		"d-odd":  "exit 3",
		"e-loud": "head -c 100000 /dev/zero | tr '\\0' x", "f-left": "sleep 600 & echo gone on",
		"g-env": `[ -z "$NODE_AGENT_ENROL_TOKEN" ] && printf 'a\tb\033[31m'`,
	} {
		write(t, dir, name, "#!/bin/sh\n"+script+"\n", 0o755)
	}
	write(t, dir, "h-lost", "#!/nowhere/sh\n", 0o755)
	write(t, dir, "no-program", "#!/bin/sh\necho no", 0o644)
	write(t, dir, ".hidden", "#!/bin/sh\necho no", 0o755)
	write(t, dir, "z-open", "#!/bin/sh\necho no", 0o777)
	found := own(t.Context(), dir)
	var said []string
	for _, one := range found {
		said = append(said, one.Name+" "+string(one.State)+" "+one.Message)
	}
	require.Equal(t, []string{
		"check/a-good GOOD fine", "check/b-warns WARNING soon", "check/c-bad BAD broken",
		"check/d-odd UNKNOWN exit status 3",
		"check/e-loud GOOD " + strings.Repeat("x", maxWords), "check/f-left GOOD gone on", "check/g-env GOOD a b [31m",
		"check/h-lost UNKNOWN it could not be run: no such file or directory",
		"check/z-open UNKNOWN not run: users other than its owner can write it",
	}, said)
}

func TestACheckThatHangsIsStoppedWithAllThatItStarted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "hangs", "#!/bin/sh\nsleep 600 & sleep 600\n", 0o755)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	found := own(ctx, dir)
	require.Equal(t, gql.NodeConditionStateUnknown, found[0].State)
	require.Contains(t, found[0].Message, "did not end within")
}

func TestOnlySoManyChecksRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range maxOwn + 4 {
		write(t, dir, "check-"+string(rune('a'+i)), "#!/bin/sh\n", 0o755)
	}
	require.Len(t, own(t.Context(), dir), maxOwn)
	require.Equal(t, gql.NodeConditionStateUnknown, own(t.Context(), filepath.Join(dir, "missing"))[0].State)
	require.Empty(t, own(t.Context(), ""))
}

func TestAVendorsListIsWeighed(t *testing.T) {
	t.Parallel()
	for out, state := range map[string]gql.NodeConditionState{
		"GPU-1, 0, No, No\nGPU-2, 0, No, No\n":          gql.NodeConditionStateGood,
		"GPU-1, 0, No, No\n":                            gql.NodeConditionStateBad,
		"GPU-1, 3, No, No\nGPU-2, 0, No, No\n":          gql.NodeConditionStateBad,
		"GPU-1, 0, Yes, No\nGPU-2, 0, No, No\n":         gql.NodeConditionStateBad,
		"GPU-1, 0, No, Yes\nGPU-2, 0, No, No\n":         gql.NodeConditionStateWarning,
		"GPU-1, [N/A], [N/A], [N/A]\nGPU-2\n":           gql.NodeConditionStateGood,
		"[Unknown Error], 0\nGPU-2, 0\n":                gql.NodeConditionStateBad,
		"GPU-1, \"unclosed, No, No\nGPU-2, 0, No, No\n": gql.NodeConditionStateUnknown,
	} {
		require.Equal(t, state, weigh(out, 2).State, out)
	}
}

func TestLittleIsAShareUpToABound(t *testing.T) {
	t.Parallel()
	const tera = 1 << 40
	require.Equal(t, gql.NodeConditionStateGood, scarce(30<<30, tera, littleDisk), "plenty, though 3 %")
	require.Equal(t, gql.NodeConditionStateWarning, scarce(15<<30, tera, littleDisk))
	require.Equal(t, gql.NodeConditionStateBad, scarce(9<<30, tera, littleDisk))
	require.Equal(t, gql.NodeConditionStateBad, scarce(4, 100, littleDisk))
	require.Equal(t, gql.NodeConditionStateBad, disk("/nowhere").State)
}

func TestMemoryIsWhatTheKernelCallsAvailable(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	require.Equal(t, gql.NodeConditionStateUnknown, memory(root).State)
	require.NoError(t, os.Mkdir(filepath.Join(root, "proc"), 0o700))
	write(t, root, "proc/meminfo", "MemTotal:       16000000 kB\nMemFree: 1 kB\nMemAvailable:    8000000 kB\n", 0o600)
	require.Equal(t, gql.NodeConditionInput{Name: "memory", State: gql.NodeConditionStateGood,
		Message: "7.6 GiB of 15.3 GiB are available"}, memory(root))
}

func TestTheClockIsThePlatformsAsFarAsTheWayAllows(t *testing.T) {
	t.Parallel()
	at := time.Now()
	var k clock
	require.Equal(t, gql.NodeConditionStateWarning, k.condition(at).State, "not compared yet")
	for theirs, state := range map[time.Duration]gql.NodeConditionState{
		0: gql.NodeConditionStateGood, 3 * time.Second: gql.NodeConditionStateGood,
		7 * time.Second:  gql.NodeConditionStateWarning,
		-3 * time.Second: gql.NodeConditionStateWarning, -time.Minute: gql.NodeConditionStateBad,
		time.Hour: gql.NodeConditionStateBad,
	} {
		k.compare(at.Add(theirs), at, at.Add(4*time.Second))
		require.Equal(t, state, k.condition(at.Add(5*time.Second)).State, theirs)
	}
}

func TestThePlatformIsToldOfStatesAtOnceAndOfWordsNowAndThen(t *testing.T) {
	t.Parallel()
	at := time.Now()
	c := New(Options{StateDir: t.TempDir(), Root: "/", Runtime: func() string { return "crun is gone" }})
	require.Nil(t, c.News(at), "nothing before every check has looked")
	c.lookQuick()
	require.Nil(t, c.News(at))
	c.lookSlow(t.Context())
	news := c.News(at)
	require.Equal(t, "the node can start no member: crun is gone", news[3].Message)
	require.NotNil(t, c.News(at), "until it was taken")
	c.Reported(news, at)
	require.Nil(t, c.News(at))
	c.quick[0].Message = "other words"
	require.Nil(t, c.News(at.Add(time.Second)))
	require.NotNil(t, c.News(at.Add(wordsEvery)))
	c.quick[0].State = gql.NodeConditionStateBad
	require.NotNil(t, c.News(at.Add(time.Second)))
}
