package standin

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// Main is the program: rke2 or, as its first argument, kubectl. It returns the exit code.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	err := run(store{dir: os.Getenv(StateVar)}, args, stdin, stdout, stderr)
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, err)
	return 1
}

func run(s store, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		return refuse("rke2 (stand-in): a command is needed")
	}
	switch args[0] {
	case "--version":
		fmt.Fprintf(stdout, "rke2 version %s (a stand-in, not RKE2)\n", release())
		return nil
	case "etcd-snapshot":
		return s.snapshot(args[1:], stdout)
	case "server", "agent":
		return serve(s, args[0] == "server", args[1:], stderr)
	case "kubectl":
		return kubectl(s, args[1:], stdin, stdout)
	case "ctr":
		return importImage(args[1], args[2:], stdin)
	case "standin-pod":
		return occupy(s, args[1:])
	}
	return refuse("rke2 (stand-in): no command %q", args[0])
}

// settings are what server and agent run with.
type settings struct {
	data, config, tokenFile, agentTokenFile, kubeconfig, restore string
	reset                                                        bool

	keys map[string]string
}

func read(args []string) (settings, error) {
	var s settings
	set := flag.NewFlagSet("rke2", flag.ContinueOnError)
	set.StringVar(&s.data, "data-dir", "/var/lib/rancher/rke2", "")
	set.StringVar(&s.config, "config", "/etc/rancher/rke2/config.yaml", "")
	set.StringVar(&s.tokenFile, "token-file", "", "")
	set.StringVar(&s.agentTokenFile, "agent-token-file", "", "")
	set.StringVar(&s.kubeconfig, "write-kubeconfig", "/etc/rancher/rke2/rke2.yaml", "")
	set.BoolVar(&s.reset, "cluster-reset", false, "")
	set.StringVar(&s.restore, "cluster-reset-restore-path", "", "")
	if err := set.Parse(args); err != nil {
		return s, err
	}
	raw, err := os.ReadFile(s.config)
	if err != nil {
		return s, err
	}
	s.keys = map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(raw))
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), ": ")
		text := value
		_ = json.Unmarshal([]byte(value), &text) // what is no JSON is the word itself
		s.keys[key] = text
	}
	return s, lines.Err()
}

// identity is which node of which cluster a data folder is.
type identity struct{ Key, Node, Member string }

func serve(s store, server bool, args []string, stderr io.Writer) error {
	with, err := read(args)
	if err != nil {
		return err
	}
	raw, err := os.ReadFile(with.tokenFile)
	if err != nil {
		return err
	}
	fmt.Fprintln(stderr, "this is a stand-in for RKE2: nothing runs in its pods")
	if with.reset {
		return s.reset(with, strings.TrimSpace(string(raw)), stderr)
	}
	_ = os.Remove(filepath.Join(with.data, "server/db", resetFlag)) // there is one after a reset alone
	me, err := s.admit(server, with, strings.TrimSpace(string(raw)))
	if err != nil {
		return err
	}
	live, err := os.OpenFile(s.livePath(me.Key, me.Node), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer live.Close()
	if err := syscall.Flock(int(live.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return refuse("rke2 (stand-in): %s is running already", me.Node)
	}
	if err := s.settle(server, with, me); err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	<-stop
	return nil
}

// admit checks the token and the node's password, and adds the unstarted member of a new server: as a learner, which
// counts in no quorum, or the second server would cost the first its own.
func (s store) admit(server bool, with settings, token string) (identity, error) {
	me := identity{Node: with.keys["node-name"]}
	ca, user, password := split(token)
	if user == "" {
		user = "server"
	}
	etcd := filepath.Join(with.data, "server/db/etcd/identity.json")
	raw, err := os.ReadFile(etcd)
	had := err == nil && json.Unmarshal(raw, &me) == nil
	if server {
		me.Key = "c" + digest(password)[:24]
	} else {
		me.Key = s.ofAgents(password)
	}
	if me.Key == "" || server != (user == "server") {
		return me, refuse("401 not authorized: the token is not for this role")
	}
	own := ensure(filepath.Join(filepath.Dir(with.config), "../node/password"))
	if server && with.keys["server"] == "" && !had {
		return me, s.begin(with, me, own)
	}
	return me, s.change(me.Key, func(c *cluster) error {
		if ca != "" && ca != digest(c.CA) {
			return refuse("the CA of the cluster is not that of the token")
		}
		if !had && !s.quorum(me.Key, c) {
			return refuse("503 %s does not answer", with.keys["server"])
		}
		if held, ok := c.Passwords[me.Node]; ok && held != own {
			return refuse("Node password rejected, duplicate hostname or contents of node password differ: %s", me.Node)
		}
		c.Passwords[me.Node] = own
		if server && c.member(me.Node) == nil {
			for _, m := range c.Etcd {
				if m.Name == "" {
					return refuse("etcdserver: unhealthy cluster: %v was never started", m.PeerURLs)
				}
			}
			c.Etcd = append(c.Etcd, etcdMember{ID: number(),
				PeerURLs: []string{"https://" + with.keys["node-ip"] + ":2380"}, Node: me.Node, Learner: true})
		}
		return nil
	})
}

// begin makes a new cluster.
func (s store) begin(with settings, me identity, own string) error {
	raw, err := os.ReadFile(with.agentTokenFile)
	if err != nil {
		return err
	}
	agents := strings.TrimSpace(string(raw))
	ca, key, err := authority()
	if err != nil {
		return err
	}
	return s.change(me.Key, func(c *cluster) error {
		*c = cluster{CA: ca, CAKey: key, AgentPassword: agents, Leader: me.Node, Nodes: map[string]*node{},
			Requests: map[string]*request{}, Bindings: map[string]bool{}, Applied: map[string]bool{},
			Passwords: map[string]string{me.Node: own}}
		c.Etcd = []etcdMember{{ID: number(), PeerURLs: []string{"https://" + with.keys["node-ip"] + ":2380"},
			Node: me.Node}}
		return write(filepath.Join(s.dir, "a"+digest(agents)[:24]), []byte(me.Key))
	})
}

// settle makes the node what it is: started, in etcd where it is a server, with the files of its role.
func (s store) settle(server bool, with settings, me identity) error {
	if _, err := os.Stat(filepath.Join(s.dir, "fail."+me.Node)); err == nil {
		return refuse("rke2 (stand-in): the test makes the join of %s fail", me.Node)
	}
	err := s.change(me.Key, func(c *cluster) error {
		if m := c.member(me.Node); server && m != nil && m.Name == "" {
			m.Name, m.Learner = me.Node+"-"+digest(me.Node)[:8], false
		} else if server && m == nil {
			return refuse("etcd: the member %s was removed from the cluster", me.Node)
		}
		if c.Nodes[me.Node] == nil {
			c.Nodes[me.Node] = &node{Server: server, Labels: map[string]string{}}
		}
		c.Nodes[me.Node].Release = release()
		return nil
	})
	if err != nil {
		return err
	}
	c, err := s.read(me.Key)
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	id, err := json.Marshal(me)
	if err != nil {
		return err
	}
	files := map[string]string{}
	if server {
		files[filepath.Join(with.data, "server/db/etcd/identity.json")] = string(id)
		files[filepath.Join(with.data, "server/tls/server-ca.crt")] = c.CA
		files[with.kubeconfig] = string(id)
	}
	files[filepath.Join(with.data, "bin/kubectl")] = fmt.Sprintf("#!/bin/sh\nexec env %s='%s' '%s' kubectl \"$@\"\n",
		StateVar, s.dir, program)
	files[filepath.Join(with.data, "bin/ctr")] = fmt.Sprintf("#!/bin/sh\nexec env %s='%s' '%s' ctr '%s' \"$@\"\n",
		StateVar, s.dir, program, with.data)
	for path, content := range files {
		if err := write(path, []byte(content)); err != nil {
			return err
		}
	}
	return errors.Join(os.Chmod(filepath.Join(with.data, "bin/kubectl"), 0o755),
		os.Chmod(filepath.Join(with.data, "bin/ctr"), 0o755))
}

// split reads a token: K10, a hash, two colons, a user, a colon and a password; or a password alone.
func split(token string) (ca, user, password string) {
	rest, full := strings.CutPrefix(token, "K10")
	if !full {
		return "", "", token
	}
	ca, rest, _ = strings.Cut(rest, "::")
	user, password, _ = strings.Cut(rest, ":")
	return ca, user, password
}

// ofAgents returns the cluster that agents with this password join.
func (s store) ofAgents(password string) string {
	raw, _ := os.ReadFile(filepath.Join(s.dir, "a"+digest(password)[:24]))
	return string(raw)
}

// ensure returns the content of a file, and writes a random one where the file does not exist.
func ensure(path string) string {
	if raw, err := os.ReadFile(path); err == nil {
		return string(raw)
	}
	made := rand.Text()
	_ = write(path, []byte(made)) // one that is lost is another node's
	return made
}

func number() uint64 {
	var raw [6]byte
	_, _ = rand.Read(raw[:]) // never fails
	var n uint64
	for _, b := range raw {
		n = n<<8 | uint64(b)
	}
	return n + 1
}
