package standin

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// StateVar names the environment variable with the folder in which the clusters of a test lie.
const StateVar = "RKE2_STANDIN_STATE"

// ReleaseVar names the environment variable with the release that the stand-in says it is.
const ReleaseVar = "RKE2_STANDIN_RELEASE"

// Releases are those that a test's nodes have, the first one in the usual place.
var Releases = []string{"v1.36.3+rke2r1", "v1.37.1+rke2r1", "v1.38.0+rke2r1"}

// release is what the stand-in answers to --version.
func release() string { return cmp.Or(os.Getenv(ReleaseVar), Releases[0]) }

// cluster is what etcd and the API server of one cluster hold.
type cluster struct {
	// CA is the certificate, whose hash a full token begins with.
	CA string `json:"ca"`
	// CAKey is its key.
	CAKey string `json:"caKey"`
	// Requests are the certificate signing requests by name, and Bindings the groups with their roles.
	Requests map[string]*request `json:"requests"`
	Bindings map[string]bool     `json:"bindings"`
	// Applied are the kinds and names of what lists have brought.
	Applied map[string]bool `json:"applied"`
	// AgentPassword is the password that agents join with.
	AgentPassword string `json:"agentPassword"`
	// Leader is the name of the node whose etcd leads.
	Leader string `json:"leader"`
	// Etcd are the members, also those that were never started.
	Etcd []etcdMember `json:"etcd"`
	// Nodes are the Node objects by name.
	Nodes map[string]*node `json:"nodes"`
	// Passwords are the node-password secrets by the node's name.
	Passwords map[string]string `json:"passwords"`
	// Pods and Budgets are what tests put there.
	Pods    []Pod    `json:"pods"`
	Budgets []Budget `json:"budgets"`
	// Events are what tests put there.
	Events []Event `json:"events"`
}

type etcdMember struct {
	ID       uint64   `json:"ID"`
	Name     string   `json:"name"`
	PeerURLs []string `json:"peerURLs"`
	Learner  bool     `json:"isLearner,omitempty"`
	// Node is where it runs.
	Node string `json:"node"`
}

type node struct {
	Server        bool              `json:"server"`
	Unschedulable bool              `json:"unschedulable"`
	Labels        map[string]string `json:"labels"`
	// Release is what its kubelet last started as.
	Release string `json:"release"`
}

// Pod is a pod of a stand-in cluster.
type Pod struct {
	Namespace, Name, UID, Node string
	Labels                     map[string]string
	// Kind is the kind of its owner.
	Kind string
	// GPUs is how many its one container holds.
	GPUs int
	// Held says that it ends with the program that holds it.
	Held bool
}

// Budget is a disruption budget: as long as Allowed is 0, no pod with these labels is evicted.
type Budget struct {
	Namespace, Name string
	Labels          map[string]string
	Allowed         int
}

// Event is an event about a pod.
type Event struct{ Namespace, Name, Type, Reason, Message string }

// store is the folder with the clusters of a test.
type store struct{ dir string }

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func (s store) path(key string) string { return filepath.Join(s.dir, key+".json") }

// locked calls do while no other program changes a cluster.
func (s store) locked(do func() error) error {
	file, err := os.OpenFile(filepath.Join(s.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	return do()
}

// change reads a cluster, lets do change it and writes it, alone.
func (s store) change(key string, do func(*cluster) error) error {
	return s.locked(func() error {
		c, err := s.read(key)
		if err != nil {
			return err
		}
		before, err := json.Marshal(c)
		if err != nil {
			return err
		}
		if err := do(c); err != nil {
			return err
		}
		after, err := json.Marshal(c)
		if err != nil || string(after) == string(before) {
			return err
		}
		return write(s.path(key), after)
	})
}

func (s store) read(key string) (*cluster, error) {
	c := &cluster{Nodes: map[string]*node{}, Passwords: map[string]string{}, Requests: map[string]*request{},
		Bindings: map[string]bool{}, Applied: map[string]bool{}}
	raw, err := os.ReadFile(s.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	return c, json.Unmarshal(raw, c)
}

// write replaces a file as a whole.
func write(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// livePath is the file that the process of a node holds locked while it lives, however it ends.
func (s store) livePath(key, node string) string { return filepath.Join(s.dir, key+"."+node+".live") }

func (s store) alive(key, node string) bool {
	file, err := os.Open(s.livePath(key, node))
	if err != nil {
		return false
	}
	defer file.Close()
	return syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) != nil
}

// quorum reports whether enough voting members live, and hands the leadership on where its holder does not.
func (s store) quorum(key string, c *cluster) bool {
	var voters, up []string
	for _, m := range c.Etcd {
		if m.Learner {
			continue
		}
		voters = append(voters, m.Node)
		if m.Name != "" && s.alive(key, m.Node) {
			up = append(up, m.Node)
		}
	}
	if len(up) < len(voters)/2+1 {
		return false
	}
	if !slices.Contains(up, c.Leader) {
		c.Leader = up[len(up)-1]
	}
	return true
}

// blocks returns the budget that keeps a pod from being evicted.
func (c *cluster) blocks(pod Pod) *Budget {
	for i, b := range c.Budgets {
		matches := b.Namespace == pod.Namespace
		for key, value := range b.Labels {
			matches = matches && pod.Labels[key] == value
		}
		if matches && b.Allowed == 0 {
			return &c.Budgets[i]
		}
	}
	return nil
}

func (c *cluster) member(name string) *etcdMember {
	for i := range c.Etcd {
		if c.Etcd[i].Node == name {
			return &c.Etcd[i]
		}
	}
	return nil
}

func refuse(format string, args ...any) error { return fmt.Errorf(format, args...) }
