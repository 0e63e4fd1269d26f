package standin

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/template"
)

// command is one call of kubectl: its words, its flags, and what follows two dashes.
type command struct {
	words, rest []string
	flags       map[string]string
}

// parseCommand reads what the controller writes: flags as --flag=value, -n VALUE, -f - and -o VALUE.
func parseCommand(args []string) command {
	c := command{flags: map[string]string{}}
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "--":
			c.rest = args[i+1:]
			return c
		case arg == "-n" || arg == "-o" || arg == "-f" || arg == "-c" || arg == "--kubeconfig":
			i++
			c.flags[arg] = args[i]
		case strings.HasPrefix(arg, "-"):
			key, value, _ := strings.Cut(arg, "=")
			c.flags[key] = value
		default:
			c.words = append(c.words, arg)
		}
	}
	return c
}

func kubectl(s store, args []string, stdin io.Reader, stdout io.Writer) error {
	call := parseCommand(args)
	raw, err := os.ReadFile(call.flags["--kubeconfig"])
	if err != nil {
		return err
	}
	me, err := s.whose(raw)
	if err != nil {
		return err
	}
	return s.change(me.Key, func(c *cluster) error {
		if !s.alive(me.Key, me.Node) || c.member(me.Node) == nil || !s.quorum(me.Key, c) {
			return refuse("Unable to connect to the server: connection refused")
		}
		c.Pods = slices.DeleteFunc(c.Pods, func(p Pod) bool { return p.Held && !s.alive(me.Key, "pod."+p.UID) })
		a := api{store: s, cluster: c, key: me.Key, out: stdout, in: stdin}
		return a.do(call)
	})
}

// whose returns which server a kubeconfig is for: a server's own, or its supervisor's for who has the password of
// agents.
func (s store) whose(kubeconfig []byte) (me identity, err error) {
	var config struct {
		Clusters []struct{ Cluster struct{ Server string } }
		Users    []struct {
			User struct{ Username, Password string }
		}
	}
	if err := json.Unmarshal(kubeconfig, &config); err != nil {
		return me, refuse("error loading config file: %v", err)
	}
	if len(config.Clusters) == 0 || len(config.Users) == 0 {
		return me, json.Unmarshal(kubeconfig, &me)
	}
	me.Key = s.ofAgents(config.Users[0].User.Password)
	host := strings.TrimSuffix(strings.TrimPrefix(config.Clusters[0].Cluster.Server, "https://"), ":9345")
	if me.Key == "" || config.Users[0].User.Username != "node" {
		return me, refuse("error: You must be logged in to the server (Unauthorized)")
	}
	c, err := s.read(me.Key)
	if err != nil {
		return me, err
	}
	for _, m := range c.Etcd {
		if slices.Contains(m.PeerURLs, "https://"+host+":2380") && s.alive(me.Key, m.Node) {
			me.Node = m.Node
		}
	}
	return me, nil
}

type api struct {
	store
	*cluster

	key string
	out io.Writer
	in  io.Reader
}

func (a api) do(call command) error {
	switch call.words[0] {
	case "get":
		return a.get(call)
	case "cordon", "uncordon":
		n := a.Nodes[call.words[1]]
		if n == nil {
			return refuse("Error from server (NotFound): nodes %q not found", call.words[1])
		}
		n.Unschedulable = call.words[0] == "cordon"
		return nil
	case "label":
		return a.label(call.words[2], call.words[3:])
	case "create", "apply":
		if path := call.flags["--raw"]; path != "" {
			return a.evict(path)
		}
		return a.take()
	case "certificate":
		return a.approve(call.words[2])
	case "delete":
		return a.remove(call)
	case "exec":
		return a.etcdctl(strings.TrimPrefix(call.words[1], "etcd-"), call.rest)
	}
	return refuse("error: unknown command %q", call.words[0])
}

func (a api) get(call command) error {
	if path, ok := call.flags["--raw"]; ok {
		if path != "/readyz" && path != "/v1-rke2/readyz" {
			return refuse("Error from server (NotFound): %s", path)
		}
		_, err := io.WriteString(a.out, "ok")
		return err
	}
	if call.words[1] == "csr" {
		return a.certificate(call.words[2])
	}
	items := []any{}
	switch call.words[1] {
	case "nodes":
		for _, name := range slices.Sorted(maps.Keys(a.Nodes)) {
			items = append(items, a.node(name))
		}
	case "pods":
		on, _, _ := strings.Cut(strings.TrimPrefix(call.flags["--field-selector"], "spec.nodeName="), ",")
		for _, p := range a.Pods {
			if on == "" || on == p.Node {
				items = append(items, p.object())
			}
		}
	case "events":
		for _, e := range a.Events {
			items = append(items, map[string]any{"lastTimestamp": "2026-01-02T03:04:05Z", "type": e.Type,
				"reason":  e.Reason,
				"message": e.Message, "involvedObject": map[string]any{"kind": "Pod", "namespace": e.Namespace,
					"name": e.Name}})
		}
	case "pdb":
		for _, b := range a.Budgets {
			items = append(items, b.object())
		}
	default:
		return refuse("error: the server doesn't have a resource type %q", call.words[1])
	}
	list := map[string]any{"items": items}
	if text, ok := strings.CutPrefix(call.flags["-o"], "go-template="); ok {
		parsed, err := template.New("").Parse(text)
		if err != nil {
			return err
		}
		return parsed.Execute(a.out, list)
	}
	return json.NewEncoder(a.out).Encode(list)
}

func (a api) node(name string) any {
	n, ready := a.Nodes[name], "True"
	if !a.alive(a.key, name) {
		ready = "Unknown"
	}
	return map[string]any{
		"metadata": map[string]any{"name": name, "labels": loose(n.Labels)},
		"spec":     map[string]any{"unschedulable": n.Unschedulable},
		"status": map[string]any{
			"conditions": []any{map[string]any{"type": "Ready", "status": ready, "reason": "StandIn"}},
			"nodeInfo":   map[string]any{"kubeletVersion": n.Release},
		},
	}
}

func (p Pod) object() any {
	limits := map[string]any{}
	if p.GPUs > 0 {
		limits["nvidia.com/gpu"] = strconv.Itoa(p.GPUs)
	}
	return map[string]any{
		"metadata": map[string]any{"namespace": p.Namespace, "name": p.Name, "uid": p.UID, "labels": loose(p.Labels),
			"annotations":       map[string]any{},
			"creationTimestamp": "2026-01-02T03:04:05Z", "ownerReferences": []any{map[string]any{"kind": p.Kind}}},
		"spec": map[string]any{"nodeName": p.Node,
			"containers": []any{map[string]any{"resources": map[string]any{"limits": limits}}}},
		"status": map[string]any{"phase": "Running", "startTime": "2026-01-02T03:04:05Z"},
	}
}

func (b Budget) object() any {
	return map[string]any{
		"metadata": map[string]any{"namespace": b.Namespace, "name": b.Name},
		"spec":     map[string]any{"selector": map[string]any{"matchLabels": loose(b.Labels)}},
		"status":   map[string]any{"disruptionsAllowed": b.Allowed},
	}
}

func loose(labels map[string]string) map[string]any {
	list := make(map[string]any, len(labels))
	for key, value := range labels {
		list[key] = value
	}
	return list
}

func (a api) label(name string, changes []string) error {
	n := a.Nodes[name]
	if n == nil {
		return refuse("Error from server (NotFound): nodes %q not found", name)
	}
	for _, change := range changes {
		if key, gone := strings.CutSuffix(change, "-"); gone && !strings.Contains(change, "=") {
			delete(n.Labels, key)
			continue
		}
		key, value, _ := strings.Cut(change, "=")
		n.Labels[key] = value
	}
	return nil
}

// evict is the eviction API, at /api/v1/namespaces/NAMESPACE/pods/POD/eviction.
func (a api) evict(path string) error {
	parts := strings.Split(path, "/")
	var body struct{ Kind, APIVersion string }
	if err := json.NewDecoder(a.in).Decode(&body); err != nil || len(parts) != 8 || body.Kind != "Eviction" ||
		body.APIVersion != "policy/v1" {
		return refuse("Error from server (BadRequest): not an eviction: %s", path)
	}
	at := slices.IndexFunc(a.Pods, func(p Pod) bool { return p.Namespace == parts[4] && p.Name == parts[6] })
	if at < 0 {
		return refuse("Error from server (NotFound): pods %q not found", parts[6])
	}
	if a.blocks(a.Pods[at]) != nil {
		return refuse("Error from server (TooManyRequests): " +
			"Cannot evict pod as it would violate the pod's disruption budget.")
	}
	a.Pods = slices.Delete(a.Pods, at, at+1)
	return nil
}

func (a api) remove(call command) error {
	name := call.words[2]
	switch call.words[1] {
	case "node":
		delete(a.Nodes, name)
		a.Pods = slices.DeleteFunc(a.Pods, func(p Pod) bool { return p.Node == name })
	case "csr":
		delete(a.Requests, name)
	case "secret":
		delete(a.Passwords, strings.TrimSuffix(name, ".node-password.rke2"))
	case "pod":
		a.Pods = slices.DeleteFunc(a.Pods, func(p Pod) bool {
			return p.Name == name && p.Namespace == call.flags["-n"]
		})
	}
	return nil
}

// etcdctl is etcdctl in the etcd pod of a node.
func (a api) etcdctl(on string, args []string) error {
	if !a.alive(a.key, on) {
		return refuse("error: the pod etcd-%s does not answer", on)
	}
	words := parseCommand(args[1:]).words
	switch {
	case len(words) > 1 && words[0] == "member" && words[1] == "list":
		for _, m := range a.Etcd {
			state := "started"
			if m.Name == "" {
				state = "unstarted"
			}
			_, err := fmt.Fprintf(a.out, "%x, %s, %s, %s, , %t\n", m.ID, state, m.Name,
				strings.Join(m.PeerURLs, ","), m.Learner)
			if err != nil {
				return err
			}
		}
		return nil
	case len(words) > 1 && words[0] == "endpoint":
		_, err := fmt.Fprintf(a.out, "127.0.0.1:2379, %x, 3.6.8, 20 kB, %t, false, 2, 9, 9,\n", a.member(on).ID,
			on == a.Leader)
		return err
	case len(words) == 2 && words[0] == "move-leader":
		return a.move(on, words[1])
	case len(words) == 3 && words[0] == "member":
		id, err := strconv.ParseUint(words[2], 16, 64)
		if err != nil {
			return err
		}
		a.Etcd = slices.DeleteFunc(a.Etcd, func(m etcdMember) bool { return m.ID == id })
		return nil
	}
	return refuse("etcdctl: unknown command %v", words)
}

func (a api) move(from, to string) error {
	id, err := strconv.ParseUint(to, 16, 64)
	if err != nil {
		return err
	}
	if from != a.Leader {
		return refuse("no leader endpoint given at %s", from)
	}
	for _, m := range a.Etcd {
		if m.ID == id {
			a.Leader = m.Node
			return nil
		}
	}
	return refuse("etcdserver: member not found")
}
