package masks_test

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/masks"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/seal"
)

const member = "mem_0000000000000000000000mask"

func hide(set *masks.Set, line string) string {
	return string(set.Hide(masks.Text{Bytes: []byte(line)}))
}

func TestEveryFormOfASecretIsHidden(t *testing.T) {
	t.Parallel()
	const secret = `p@ss/w+rd "ö" 7?&x` + "\xff\xfe"
	set := masks.NewSet([][]byte{[]byte(secret)})
	std, raw := base64.StdEncoding, base64.RawURLEncoding
	quoted, err := json.Marshal(`p@ss/w+rd "ö" 7?&x`)
	require.NoError(t, err)
	for name, printed := range map[string]string{
		"bytes":      secret,
		"base64":     std.EncodeToString([]byte(secret)),
		"base64 url": raw.EncodeToString([]byte(secret)),
		"query":      url.QueryEscape(secret),
		"path":       url.PathEscape(secret),
		"lower case": strings.ToLower(url.QueryEscape("p@ss/w+rd")) + strings.TrimPrefix(lower(url.QueryEscape(secret)),
			lower(url.QueryEscape("p@ss/w+rd"))),
		"base64, query": url.QueryEscape(std.EncodeToString([]byte(secret))),
	} {
		require.Equal(t, "a["+"[masked]"+"]b", hide(set, "a["+printed+"]b"), name)
	}
	json := masks.NewSet([][]byte{[]byte(`p@ss/w+rd "ö" 7?&x`)})
	require.Equal(t, `{"k":"[masked]"}`, hide(json, `{"k":`+string(quoted)+`}`))
	for before := range 7 {
		for after := range 4 {
			longer := strings.Repeat("u", before) + secret + strings.Repeat("v", after)
			for _, encoding := range []*base64.Encoding{std, base64.RawStdEncoding, base64.URLEncoding, raw} {
				shown := hide(set, encoding.EncodeToString([]byte(longer)))
				require.Contains(t, shown, masks.Hidden)
				require.Less(t, len(strings.Replace(shown, masks.Hidden, "", 1)), 4+(before+after)*4/3+4, shown)
			}
		}
	}
}

func lower(escaped string) string {
	parts := strings.Split(escaped, "%")
	for i := 1; i < len(parts); i++ {
		parts[i] = strings.ToLower(parts[i][:2]) + parts[i][2:]
	}
	return strings.Join(parts, "%")
}

func TestOverlappingAndRepeatedSecretsLeaveNothing(t *testing.T) {
	t.Parallel()
	set := masks.NewSet([][]byte{[]byte("abcdef"), []byte("defghi"), []byte("abcd")})
	require.Equal(t, "x[masked]y", hide(set, "xabcdefghiy"))
	require.Equal(t, "[masked]", hide(set, "abcdefabcdef"))
	require.Equal(t, "[masked] [masked]", hide(set, "abcdef defghi"))
	require.Equal(t, "abc def", hide(set, "abc def"))
}

func TestLinesOfASecretAreHiddenOneByOne(t *testing.T) {
	t.Parallel()
	key := "-----BEGIN KEY-----\r\nAAAAB3NzaC1yc2E\nshort\n-----END KEY-----\n"
	set := masks.NewSet([][]byte{[]byte(key)})
	require.Equal(t, "[masked]", hide(set, "-----BEGIN KEY-----"))
	require.Equal(t, "key: [masked]", hide(set, "key: AAAAB3NzaC1yc2E"))
	require.Equal(t, "a short line", hide(set, "a short line"))
	coded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("long secret ", 20)))
	set = masks.NewSet([][]byte{[]byte(strings.Repeat("long secret ", 20))})
	for _, line := range []string{coded[:76], coded[76:152], coded[:64], coded[64:128]} {
		require.Equal(t, "[masked]", hide(set, line), "as base64(1) breaks lines")
	}
}

func TestSecretIsHiddenWhereALineWasCut(t *testing.T) {
	t.Parallel()
	const secret = "correct-horse-battery"
	set := masks.NewSet([][]byte{[]byte(secret), []byte(strings.Repeat("0123456789abcdef", 1000))})
	for cut := 3; cut <= len(secret)-3; cut++ {
		first := set.Hide(masks.Text{Bytes: []byte("x " + secret[:cut]), Follows: true})
		second := set.Hide(masks.Text{Bytes: []byte(secret[cut:] + " y"), Before: true})
		require.Equal(t, "x [masked]", string(first), cut)
		require.Equal(t, "[masked] y", string(second), cut)
	}
	long := strings.Repeat("0123456789abcdef", 1000)
	require.Equal(t, "a [masked] b", hide(set, "a "+long+" b"))
	require.Equal(t, "[masked]", string(set.Hide(masks.Text{Bytes: []byte(long[1030:9222]), Before: true,
		Follows: true})))
	require.Equal(t, "correct", hide(set, "correct"), "a line that was not cut has no part of a secret")
}

func TestShortSecretsHideNothing(t *testing.T) {
	t.Parallel()
	set := masks.NewSet([][]byte{nil, []byte("a"), []byte("yes"), []byte(" \n")})
	require.Equal(t, "a yes", hide(set, "a yes"))
	require.Equal(t, "anything", hide(nil, "anything"))
}

// ground is a state directory with a member.
func ground(t *testing.T) (string, *seal.Key) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "members", member), 0o700))
	key, err := seal.LoadOrCreate(dir)
	require.NoError(t, err)
	return dir, key
}

func TestSecretsAreKeptSealedForTheNextAgent(t *testing.T) {
	t.Parallel()
	dir, key := ground(t)
	first := masks.NewKeeper(dir, key)
	require.NoError(t, first.Keep(member, [][]byte{[]byte("hunter22")}))
	require.NoError(t, first.Keep(member, [][]byte{[]byte("hunter22"), []byte("hunter33")}))
	file := filepath.Join(dir, "members", member, "masks")
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NotContains(t, string(raw), "hunter")
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())

	next := masks.NewKeeper(dir, key)
	shown, err := next.Hide(member, "unter22 is the end of hunter22\nunter22 hunter33")
	require.NoError(t, err)
	require.Equal(t, "[masked] is the end of [masked]\nunter22 [masked]", shown)
	require.Error(t, next.Keep("mem_nofolder", [][]byte{[]byte("hunter44")}))

	require.NoError(t, os.WriteFile(file, []byte("damaged"), 0o600))
	_, err = masks.NewKeeper(dir, key).Of(member)
	require.ErrorContains(t, err, "read the values to mask", "what cannot be masked is not shown")
	require.NoError(t, os.Remove(file))
	next.Forget(member)
	shown, err = next.Hide(member, "hunter22")
	require.NoError(t, err)
	require.Equal(t, "hunter22", shown)
}

func TestOldestSecretsAreForgottenOverTheBound(t *testing.T) {
	t.Parallel()
	dir, key := ground(t)
	keeper := masks.NewKeeper(dir, key)
	var secrets [][]byte
	for i := range 300 {
		secrets = append(secrets, []byte("secret-"+strings.Repeat("x", i+1)+"-"))
	}
	require.NoError(t, keeper.Keep(member, secrets))
	require.NoError(t, keeper.Keep(member, [][]byte{make([]byte, 100<<10)}), "a large file is none")
	set, err := keeper.Of(member)
	require.NoError(t, err)
	require.Equal(t, "[masked]", hide(set, "secret-"+strings.Repeat("x", 300)+"-"))
	require.Equal(t, "secret-x-", hide(set, "secret-x-"))
}
