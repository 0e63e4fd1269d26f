package dial

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPolicyReadsAddressesRangesAndPorts(t *testing.T) {
	t.Parallel()
	policy, err := ParsePolicy(" 10.77.0.0/24:8443, 127.0.0.1,[fd00::/8]:443 ,::1")
	require.NoError(t, err)
	for address, allowed := range map[string]bool{
		"10.77.0.9:8443": true, "10.77.0.9:443": false, "10.77.1.9:8443": false, "127.0.0.1:1": true,
		"127.0.0.2:1":           false,
		"[::ffff:127.0.0.1]:80": true, "[fd00::1]:443": true, "[fd00::1]:80": false, "[::1]:9": true,
		"169.254.169.254:80": false,
	} {
		require.Equal(t, allowed, policy.Allows(netip.MustParseAddrPort(address)), address)
	}
	for _, bad := range []string{"localhost", "10.0.0.0/33", "10.0.0.1:0", "10.0.0.1:70000", "[::1",
		"[::1]:http", "*"} {
		_, err := ParsePolicy(bad)
		require.Error(t, err, bad)
	}
	none, err := ParsePolicy("")
	require.NoError(t, err)
	require.False(t, none.Allows(netip.MustParseAddrPort("127.0.0.1:80")))
}

// listener is a real place to connect to, with its port.
func listener(t *testing.T) (port string) {
	t.Helper()
	open, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = open.Close() })
	_, port, err = net.SplitHostPort(open.Addr().String())
	require.NoError(t, err)
	return port
}

func refusedDial(t *testing.T, err error) *Refused {
	t.Helper()
	refused := new(Refused)
	require.ErrorAs(t, err, &refused)
	return refused
}

func TestEveryRoadInsideIsRefusedOnTheAddressItLeadsTo(t *testing.T) {
	t.Parallel()
	port := listener(t)
	for name, c := range map[string]struct{ host, resolved string }{
		"loopback":               {"127.0.0.1", ""},
		"loopback, elsewhere":    {"127.9.9.9", ""},
		"this host":              {"0.0.0.0", ""},
		"IPv6 loopback":          {"::1", ""},
		"IPv6 any":               {"::", ""},
		"mapped loopback":        {"::ffff:127.0.0.1", ""},
		"mapped, in hexadecimal": {"::ffff:7f00:1", ""},
		"private":                {"10.0.0.1", ""},
		"metadata":               {"169.254.169.254", ""},
		"mapped metadata":        {"::ffff:169.254.169.254", ""},
		"metadata of IPv6":       {"fd00:ec2::254", ""},
		"NAT64 of metadata":      {"64:ff9b::a9fe:a9fe", ""},
		"6to4 of loopback":       {"2002:7f00:1::", ""},
		"link-local with a zone": {"fe80::1%lo", ""},
		"short":                  {"127.1", ""},
		"decimal":                {"2130706433", ""},
		"octal":                  {"0177.0.0.1", ""},
		"octal, whole":           {"017700000001", ""},
		"hexadecimal":            {"0x7f000001", ""},
		"hexadecimal, in parts":  {"0x7f.0x0.0x0.0x1", ""},
		"decimal with a dot":     {"2130706433.", ""},
		"localhost by name":      {"localhost", ""},
		"a name of loopback":     {"inside.test.", "127.0.0.1"},
		"a name of metadata":     {"metadata.test.", "169.254.169.254"},
		"a name of NAT64":        {"nat.test.", "64:ff9b::7f00:1"},
		"a name of mapped":       {"mapped.test.", "::ffff:127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var names *net.Resolver
			if c.resolved != "" {
				names = resolver(t, c.resolved)
			}
			connection, err := to(Policy{}, true, names)(t.Context(), "tcp", net.JoinHostPort(c.host, port))
			require.Nil(t, connection)
			refusedDial(t, err)
		})
	}
}

func TestANameThatTurnsInsideAfterItWasLookedAtIsRefused(t *testing.T) {
	t.Parallel()
	port := listener(t)
	names := resolver(t, "8.8.8.8", "127.0.0.1")
	looked, err := names.LookupNetIP(t.Context(), "ip4", "rebound.test.")
	require.NoError(t, err)
	require.True(t, Public(looked[0]), "at the first look it is public")
	_, err = to(Policy{}, true, names)(t.Context(), "tcp", net.JoinHostPort("rebound.test.", port))
	require.Equal(t, "127.0.0.1:"+port, refusedDial(t, err).Address)
}

func TestWhatTheOperatorAllowsIsReachedByNameAndByAddress(t *testing.T) {
	t.Parallel()
	port := listener(t)
	policy, err := ParsePolicy("127.0.0.0/8:" + port)
	require.NoError(t, err)
	connect := to(policy, true, resolver(t, "127.0.0.1"))
	for _, host := range []string{"127.0.0.1", "registry.test.", "::ffff:127.0.0.1"} {
		connection, err := connect(t.Context(), "tcp", net.JoinHostPort(host, port))
		require.NoError(t, err, host)
		require.NoError(t, connection.Close())
	}
	_, err = connect(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", listener(t)))
	refusedDial(t, err)
	_, err = connect(t.Context(), "udp", net.JoinHostPort("127.0.0.1", port))
	refusedDial(t, err)
}

func TestAURLIsJudgedAsFarAsItSaysWhereItLeads(t *testing.T) {
	t.Parallel()
	policy, err := ParsePolicy("10.0.0.0/8:8443")
	require.NoError(t, err)
	for text, allowed := range map[string]bool{
		"https://hooks.example/x": true, "http://8.8.8.8": true, "https://10.1.2.3:8443": true,
		"https://[2606:4700::1111]:443/": true,
		"https://10.1.2.3":               false, "http://127.0.0.1:8080": false, "https://[::1]/": false,
		"http://2130706433/":  false,
		"http://0x7f.1/":      false,
		"ftp://hooks.example": false, "https://user:pass@hooks.example": false, "https:///path": false,
		"file:///etc/passwd":    false,
		"https://8.8.8.8:99999": false, "https://8.8.8.8:0": false, "https://[fe80::1%25lo]/": false,
	} {
		address, err := url.Parse(text)
		require.NoError(t, err)
		require.Equal(t, allowed, Check(policy, true, address) == nil, text)
	}
	address, err := url.Parse("https://8.8.8.8")
	require.NoError(t, err)
	require.Error(t, Check(policy, false, address), "public addresses are not for everybody")
}

func TestAClientFollowsNoRedirectAndNoProxyAndReadsABoundedAnswer(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data", http.StatusFound)
		case "/announced":
			w.Header().Set("Content-Length", "5000000")
			_, _ = w.Write(make([]byte, 1<<10))
		case "/endless":
			for range 8 << 10 {
				_, _ = w.Write(make([]byte, 1<<10))
			}
		case "/whole":
			_, _ = w.Write(make([]byte, maxAnswer))
		}
	}))
	defer server.Close()
	// The server answers to a name too, so that a proxy of the environment would apply.
	_, port, err := net.SplitHostPort(strings.TrimPrefix(server.URL, "http://"))
	require.NoError(t, err)
	reach := client(to(Loopback(), false, resolver(t, "127.0.0.1")), time.Minute)
	get := func(path string) (*http.Response, error) { return reach.Get("http://adapter.test:" + port + path) }

	answer, err := get("/away")
	require.NoError(t, err)
	require.Equal(t, http.StatusFound, answer.StatusCode, "the redirect is the answer")
	require.NoError(t, answer.Body.Close())
	_, err = get("/announced")
	require.ErrorContains(t, err, "longer than")
	answer, err = get("/endless")
	require.NoError(t, err)
	read, err := answer.Body.Read(make([]byte, 1))
	require.NoError(t, err)
	require.Equal(t, 1, read)
	n, err := readAll(answer)
	require.ErrorContains(t, err, "longer than")
	require.Equal(t, maxAnswer-1, n)
	answer, err = get("/whole")
	require.NoError(t, err)
	n, err = readAll(answer)
	require.NoError(t, err)
	require.Equal(t, maxAnswer, n)

	_, err = NewClient(Policy{}, true, time.Minute).Get(server.URL)
	refusedDial(t, err)
}

// readAll counts what a body gives.
func readAll(answer *http.Response) (n int, err error) {
	defer func() { _ = answer.Body.Close() }()
	into := make([]byte, 64<<10)
	for {
		got, err := answer.Body.Read(into)
		n += got
		if err != nil {
			if err.Error() == "EOF" {
				return n, nil
			}
			return n, err
		}
	}
}

func TestAClientGivesUpInTime(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
	}))
	defer server.Close()
	_, err := NewClient(Loopback(), false, 50*time.Millisecond).Get(server.URL)
	require.True(t, errors.Is(err, context.DeadlineExceeded), "%v", err)
}
