package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// etcdDir is where etcd has its data.
func (s settings) etcdDir() string { return s.path("server/db/etcd") }

// etcdName is this server's name in etcd: the node's with eight hexadecimal digits, for as long as its data are there.
func (s settings) etcdName() (string, error) {
	path := s.etcdDir() + "/name"
	raw, err := os.ReadFile(path)
	if err == nil {
		return string(raw), nil
	}
	name := s.nodeName() + "-" + digest(serial().String())[:8]
	return name, write(path, []byte(name), 0o600)
}

// etcdctl runs etcdctl against the etcd of servers, and returns what it prints.
func (s settings) etcdctl(ctx context.Context, hosts []string, args ...string) ([]byte, error) {
	endpoints := make([]string, 0, len(hosts))
	for _, host := range hosts {
		endpoints = append(endpoints, "https://"+host+":2379")
	}
	tls := s.path("server/tls/etcd")
	command := exec.CommandContext(ctx, program("kube"), append([]string{"etcdctl",
		"--endpoints=" + strings.Join(endpoints, ","), "--cacert=" + tls + "/server-ca.crt",
		"--cert=" + tls + "/server-client.crt", "--key=" + tls + "/server-client.key", "--dial-timeout=3s",
		"--command-timeout=8s"}, args...)...)
	var failed strings.Builder
	command.Stderr = &failed
	out, err := command.Output()
	if err != nil {
		said := strings.TrimSpace(failed.String())
		err = fmt.Errorf("etcdctl %s: %w: %s", args[0], err, said[strings.LastIndex(said, "\n")+1:])
	}
	return out, err
}

type etcdMember struct {
	ID        uint64
	Name      string
	PeerURLs  []string
	IsLearner bool
}

func (s settings) etcdMembers(ctx context.Context, hosts []string) ([]etcdMember, error) {
	raw, err := s.etcdctl(ctx, hosts, "member", "list", "-w", "json")
	if err != nil {
		return nil, err
	}
	var list struct{ Members []etcdMember }
	return list.Members, json.Unmarshal(raw, &list)
}

// admit adds this server to the etcd of a cluster as a learner, and returns the initial cluster for its first start.
// etcd refuses it for as long as another one has not started.
func (s settings) admit(ctx context.Context, by, name string) (string, error) {
	var cluster []string
	own := "https://" + s.nodeIP() + ":2380"
	err := until(ctx, "etcd to take "+name, func(ctx context.Context) error {
		members, err := s.etcdMembers(ctx, []string{by})
		if err != nil {
			return err
		}
		there := false
		cluster = []string{name + "=" + own}
		for _, m := range members {
			if slices.Contains(m.PeerURLs, own) {
				there = true
				continue
			}
			if m.Name == "" {
				return fmt.Errorf("etcd member %v has not started", m.PeerURLs)
			}
			cluster = append(cluster, m.Name+"="+m.PeerURLs[0])
		}
		if there {
			return nil
		}
		_, err = s.etcdctl(ctx, []string{by}, "member", "add", name, "--learner", "--peer-urls="+own)
		return err
	})
	return strings.Join(cluster, ","), err
}

// etcdConfig writes etcd's config file.
func (s settings) etcdConfig(name, cluster, state string) error {
	tls := s.path("server/tls/etcd")
	config := map[string]any{
		"name": name, "data-dir": s.etcdDir(), "initial-cluster": cluster, "initial-cluster-state": state,
		"listen-client-urls":          "https://127.0.0.1:2379,https://" + s.nodeIP() + ":2379",
		"advertise-client-urls":       "https://" + s.nodeIP() + ":2379",
		"listen-peer-urls":            "https://127.0.0.1:2380,https://" + s.nodeIP() + ":2380",
		"initial-advertise-peer-urls": "https://" + s.nodeIP() + ":2380",
		"listen-metrics-urls":         "http://127.0.0.1:2381",
		"heartbeat-interval":          500, "election-timeout": 5000, "snapshot-count": 10000, "log-level": "warn",
		"client-transport-security": map[string]any{"cert-file": tls + "/server-client.crt",
			"key-file": tls + "/server-client.key", "client-cert-auth": true,
			"trusted-ca-file": tls + "/server-ca.crt"},
		"peer-transport-security": map[string]any{"cert-file": tls + "/peer-server-client.crt",
			"key-file": tls + "/peer-server-client.key", "client-cert-auth": true,
			"trusted-ca-file": tls + "/peer-ca.crt"},
	}
	raw, err := yaml.Marshal(config)
	if err != nil {
		return err
	}
	return write(s.etcdDir()+"/config", raw, 0o600)
}

// peers are the servers that this one's etcd has first joined.
func (s settings) peers() (hosts []string) {
	raw, err := os.ReadFile(s.etcdDir() + "/config")
	var config struct {
		Cluster string `json:"initial-cluster"`
	}
	if err != nil || yaml.Unmarshal(raw, &config) != nil {
		return nil
	}
	for _, one := range strings.Split(config.Cluster, ",") {
		_, url, _ := strings.Cut(one, "=")
		host := strings.TrimSuffix(strings.TrimPrefix(url, "https://"), ":2380")
		if host != "" && host != s.nodeIP() {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// promote gives this server a vote, once its etcd has caught up with the leader's.
func (s settings) promote(ctx context.Context) error {
	return until(ctx, "etcd to give this server a vote", func(ctx context.Context) error {
		members, err := s.etcdMembers(ctx, []string{s.nodeIP()})
		if peers := s.peers(); err != nil && len(peers) > 0 {
			members, err = s.etcdMembers(ctx, peers) // a learner answers nothing about members
		}
		if err != nil {
			return err
		}
		var voters []string
		var own *etcdMember
		for i, m := range members {
			if slices.Contains(m.PeerURLs, "https://"+s.nodeIP()+":2380") {
				own = &members[i]
			} else if !m.IsLearner && len(m.PeerURLs) > 0 {
				host := strings.TrimPrefix(m.PeerURLs[0], "https://")
				voters = append(voters, strings.TrimSuffix(host, ":2380"))
			}
		}
		if own == nil {
			return errors.New("etcd does not list this server")
		}
		if !own.IsLearner {
			return nil
		}
		_, err = s.etcdctl(ctx, voters, "member", "promote", strconv.FormatUint(own.ID, 16))
		return err
	})
}

// snapshots is "rke2 etcd-snapshot".
func snapshots(ctx context.Context, args []string) error {
	verb := "save"
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		verb, args = args[0], args[1:]
	}
	var names []string
	for len(args) > 0 && !strings.HasPrefix(args[len(args)-1], "-") && (verb == "delete") {
		names, args = append(names, args[len(args)-1]), args[:len(args)-1]
	}
	s, err := ofNode(args)
	if err != nil {
		return err
	}
	dir := s.value("etcd-snapshot-dir", s.path("server/db/snapshots"))
	switch verb {
	case "save":
		name := fmt.Sprintf("%s-%s-%d", s.value("etcd-snapshot-name", "on-demand"), s.nodeName(), time.Now().Unix())
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if _, err := s.etcdctl(ctx, []string{s.nodeIP()}, "snapshot", "save", dir+"/"+name); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "Snapshot %s saved.\n", name)
		return nil
	case "list", "ls":
		entries, err := os.ReadDir(dir)
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		fmt.Println("Name Location Size Created")
		for _, entry := range entries {
			if info, err := entry.Info(); err == nil {
				fmt.Printf("%s file://%s/%s %d %s\n", entry.Name(), dir, entry.Name(), info.Size(),
					info.ModTime().UTC().Format(time.RFC3339))
			}
		}
		return nil
	case "delete":
		for _, name := range names {
			if strings.Contains(name, "/") {
				return fmt.Errorf("snapshot %q: a name has no slash", name)
			}
			if err := os.Remove(dir + "/" + name); err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "Snapshot %s deleted.\n", name)
		}
		return nil
	}
	return fmt.Errorf("etcd-snapshot: the stand-in has no command %q", verb)
}

// ofNode are the settings of the server on this machine, for commands beside it.
func ofNode(args []string) (settings, error) {
	kept := []string{}
	for i := 0; i < len(args); i++ {
		switch key, _, joined := strings.Cut(strings.TrimLeft(args[i], "-"), "="); key {
		case "name", "dir":
			kept = append(kept, strings.Replace(args[i], key, "etcd-snapshot-"+key, 1))
		case "output", "o":
			if !joined {
				i++
			}
		default:
			kept = append(kept, args[i])
		}
	}
	return read("server", kept)
}

// reset is "rke2 server --cluster-reset": etcd starts again with this server alone, where wanted from a snapshot.
func reset(ctx context.Context, s settings) error {
	if s.value("server", "") != "" {
		return errors.New("cannot perform cluster-reset while server URL is set - " +
			"remove server from configuration before resetting")
	}
	// Nothing may write while it is reset, and RKE2 ends its static pods for that. No kubelet runs that would start them again.
	if err := s.endStatic(); err != nil {
		return err
	}
	name, err := s.etcdName()
	if err != nil {
		return err
	}
	own := "https://" + s.nodeIP() + ":2380"
	from := s.value("cluster-reset-restore-path", "")
	if from != "" && !strings.HasPrefix(from, "/") {
		from = s.path("server/db/snapshots", from)
	}
	data := s.etcdDir()
	aside := fmt.Sprintf("%s-old-%d", data, time.Now().Unix())
	args := []string{"etcdutl", "snapshot", "restore", from}
	if from == "" {
		// What is there becomes the snapshot: its member's database, without the checksum of a saved one.
		args = []string{"etcdutl", "snapshot", "restore", data + "/member/snap/db", "--skip-hash-check"}
	}
	args = append(args, "--name="+name, "--data-dir="+data+"-new", "--initial-cluster="+name+"="+own,
		"--initial-advertise-peer-urls="+own)
	if err := os.RemoveAll(data + "-new"); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, program("kube"), args...)
	command.Stderr = os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if err := os.Rename(data, aside); err != nil {
		return err
	}
	if err := os.Rename(data+"-new", data); err != nil {
		return err
	}
	if err := write(data+"/name", []byte(name), 0o600); err != nil {
		return err
	}
	if err := s.etcdConfig(name, name+"="+own, "new"); err != nil {
		return err
	}
	if err := write(s.resetFlag(), nil, 0o600); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr,
		"Managed etcd cluster membership has been reset, restart without --cluster-reset flag now. "+
			"Backup and delete ${datadir}/server/db on each peer etcd server and rejoin the nodes")
	return nil
}

// resetFlag is left by a reset, as RKE2 leaves it, until the server is started.
func (s settings) resetFlag() string { return s.path("server/db/reset-flag") }
