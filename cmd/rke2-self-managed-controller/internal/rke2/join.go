package rke2

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/machine"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// create brings the first server up, then the others one by one, then the agents.
func create(ctx context.Context, w work) error {
	servers, agents := w.Of(machine.Server), w.Of(machine.Agent)
	w.Progress("starting the first server", 10, "starting "+machine.Name(servers[0]))
	if err := w.joinOne(ctx, servers[0], nil); err != nil {
		return err
	}
	if err := w.joinAll(ctx, append(servers[1:len(servers):len(servers)], agents...), servers[0]); err != nil {
		return err
	}
	if err := w.devices(ctx, servers[0]); err != nil {
		return err
	}
	return w.Evidence("nodes", map[string]int{"servers": len(servers), "agents": len(agents)})
}

// joinAll has members join by a server that serves: servers one by one, then the agents at once.
func (w work) joinAll(ctx context.Context, members []adapter.Member, by adapter.Member) error {
	var agents []adapter.Member
	for i, member := range members {
		if member.ComponentKey == machine.Agent {
			agents = append(agents, member)
			continue
		}
		w.Progress("joining "+machine.Name(member), 20+40*i/len(members), machine.Name(member)+" joins as a server")
		if err := w.joinOne(ctx, member, &by); err != nil {
			return err
		}
	}
	if len(agents) == 0 {
		return nil
	}
	w.Progress("joining agents", 70, fmt.Sprintf("%d agents join", len(agents)))
	return w.Each(ctx, agents, func(ctx context.Context, member adapter.Member) error {
		return w.joinOne(ctx, member, &by)
	})
}

// joinOne writes a member's files, starts it and waits until it is all that it should be. By is a server that serves;
// nil for the first server.
func (w work) joinOne(ctx context.Context, member adapter.Member, by *adapter.Member) error {
	if err := w.Member(member.ID, adapter.MemberJoining, adapter.HealthUnknown, nil); err != nil {
		return err
	}
	if err := w.bring(ctx, member, by, ""); err != nil {
		return err
	}
	if err := w.serves(ctx, member, by, "", ""); err != nil {
		return err
	}
	return w.Member(member.ID, adapter.MemberActive, adapter.Healthy, map[string]any{"node": machine.Name(member)})
}

// bring gives a member that does not run the files and the program of the configuration, and starts it. The prefix
// keeps steps distinct where an operation starts a member twice.
func (w work) bring(ctx context.Context, member adapter.Member, by *adapter.Member, prefix string) error {
	var config machine.Config
	if err := w.Config(&config); err != nil {
		return err
	}
	files, err := w.files(ctx, config, member, by)
	if err != nil {
		return err
	}
	for _, file := range files {
		if _, err := w.Do(ctx, member, prefix+"write"+strings.ReplaceAll(file.Path, "/", "."), file); err != nil {
			return err
		}
	}
	if err := w.place(ctx, member, config); err != nil {
		return err
	}
	_, err = w.Do(ctx, member, prefix+"start", machine.Start(member, config))
	return err
}

// devices gives the cluster the device plugin that the configuration names.
func (w work) devices(ctx context.Context, by adapter.Member) error {
	var config machine.Config
	if err := w.Config(&config); err != nil || config.DevicePlugin == "" {
		return err
	}
	apply, err := machine.DevicePlugin(config.DevicePlugin)
	if err == nil {
		_, err = w.Do(ctx, by, "devices", apply, adapter.Within(time.Minute))
	}
	return err
}

// place brings the release onto a node, where the manifest pins it, and sees that the node has the configured one.
func (w work) place(ctx context.Context, member adapter.Member, config machine.Config) error {
	for i, one := range machine.Fetches(w.Instance(), config) {
		if _, err := w.Do(ctx, member, fmt.Sprintf("fetch.%d", i), one, adapter.Within(machine.JoinTime)); err != nil {
			return err
		}
	}
	if config.Release == "" {
		return nil
	}
	said, err := w.Look(ctx, member, "release", machine.VersionOf(config), adapter.Within(machine.Quick))
	if err != nil {
		return err
	}
	if !strings.Contains(said.Stdout, "rke2 version "+config.Release+" ") {
		return adapter.Fail("RELEASE_MISSING", adapter.OwnerNode, true,
			"the node of %s does not have %s in %s: install it there, or choose a version of the app that brings it",
			machine.Name(member), config.Release, config.ProgramPath())
	}
	return nil
}

// files are what a member's RKE2 reads. A server has both tokens, an agent that of agents alone.
func (w work) files(ctx context.Context, config machine.Config, member adapter.Member,
	by *adapter.Member) ([]adapter.WriteFile, error) {
	ofServers, err := w.keys.password(machine.Server, w.Instance().ID)
	if err != nil {
		return nil, err
	}
	ofAgents, err := w.keys.password(machine.Agent, w.Instance().ID)
	if err != nil {
		return nil, err
	}
	join, pinned, token := "", "", ofServers
	if by != nil {
		join = by.Host()
		if pinned, err = w.pin(ctx, *by); err != nil {
			return nil, err
		}
		token = pinned + "::server:" + ofServers
	}
	contents := map[string]string{machine.TokenPath: token, machine.AgentTokenPath: ofAgents,
		machine.SupervisorPath: supervisorConfig(member, ofAgents)}
	if member.ComponentKey == machine.Agent {
		contents = map[string]string{machine.TokenPath: pinned + "::node:" + ofAgents}
	}
	files := []adapter.WriteFile{machine.ConfigFile(config, member, join)}
	for _, path := range []string{machine.TokenPath, machine.AgentTokenPath, machine.SupervisorPath} {
		content, ok := contents[path]
		if !ok {
			continue
		}
		file, err := w.sealed(member, path, content)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

// pin is how a full token begins: the hash of the cluster's CA, so that a member joins no other cluster.
func (w work) pin(ctx context.Context, by adapter.Member) (string, error) {
	read := adapter.RunCommand{Command: machine.Shell(`sha256sum "$R` + machine.CaPath + `"`)}
	result, err := w.Do(ctx, by, "pin", read, adapter.Within(machine.Quick))
	if err != nil {
		return "", err
	}
	fields := strings.Fields(result.Stdout)
	if len(fields) == 0 || len(fields[0]) != 64 {
		return "", adapter.Fail("CA_UNREADABLE", adapter.OwnerNode, true, "%s did not report the hash of its CA",
			machine.Name(by))
	}
	return "K10" + fields[0], nil
}

// supervisorConfig is a kubeconfig for the supervisor of a server, as its agents see it.
func supervisorConfig(member adapter.Member, password string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"s","clusters":[{"name":"s","cluster":`+
		`{"server":"https://%s:9345","insecure-skip-tls-verify":true}}],"users":[{"name":"s","user":`+
		`{"username":"node","password":"%s"}}],"contexts":[{"name":"s","context":{"cluster":"s","user":"s"}}]}`,
		member.Host(), password)
}

// serves waits until a member is all that it should be: a server's supervisor and API server are ready, its Node is
// Ready, of a version where one is given, and its etcd has started and votes; an agent's Node is Ready, as a server
// sees it.
func (w work) serves(ctx context.Context, member adapter.Member, by *adapter.Member, prefix, version string) error {
	on, name, line := member, machine.Name(member), "^"+machine.Name(member)+" True"
	if version != "" {
		// A kubelet that RKE2 did not build says only which Kubernetes it is.
		number, build, _ := strings.Cut(strings.ReplaceAll(version, ".", "[.]"), "+")
		line += " .* " + number + "([+]" + build + ")?$"
	}
	probes := [][2]string{{"node", `test "$(` + machine.Plain + ` get nodes -o "go-template=` +
		machine.Quoted(machine.NodesTemplate) + `" | ` +
		`grep -Ec "` + line + `")" = 1`}}
	if member.ComponentKey == machine.Server {
		probes = append([][2]string{
			{"supervisor", `"$k" --kubeconfig "$R` + machine.SupervisorPath +
				`" get --raw=/v1-rke2/readyz > /dev/null`},
			{"apiserver", machine.Plain + ` get --raw=/readyz > /dev/null`},
		}, append(probes, [2]string{"etcd", machine.Plain + " " + machine.InEtcd(member) +
			` member list | ` +
			`grep -Eq "^[0-9a-f]+, started, ` + name + `-[0-9a-f]{8}, .*, false$"`})...)
	} else {
		on = *by
	}
	for _, one := range probes {
		w.Progress("waiting for "+name, 30, fmt.Sprintf("%s: waiting for its %s", name, one[0]))
		probe := adapter.Probe{Exec: &adapter.ExecProbe{Command: machine.Shell(machine.KubectlHead + one[1])},
			Attempts: 1000, IntervalSeconds: 0.3, TimeoutSeconds: 15}
		if _, err := w.Do(ctx, on, prefix+"ready."+one[0]+"."+name, probe,
			adapter.Within(machine.JoinTime)); err != nil {
			return err
		}
	}
	return nil
}

// add has new members join. When it fails or is canceled, nothing of them is left in the cluster.
func add(ctx context.Context, w work) error {
	fresh := w.Targets()
	by, err := w.witness(fresh)
	if err != nil {
		return err
	}
	if err := w.joinAll(ctx, fresh, by); err != nil {
		return w.takeBack(ctx, fresh, err)
	}
	return w.Evidence("joined", strings.Split(machine.Names(fresh), ", "))
}

// witness returns a server that stays and can be reached.
func (w work) witness(out []adapter.Member) (adapter.Member, error) {
	known := append(machine.Without(w.Of(machine.Server), w.joined), serversOf(w.joined)...)
	if list := machine.Reached(known, out); len(list) > 0 {
		return list[0], nil
	}
	return adapter.Member{}, adapter.Fail("NO_SERVER", adapter.OwnerNode, true,
		"no server of the cluster is reachable: recover one first")
}

// takeBack undoes a join and returns the reason for it. A server that never started is a member of etcd all the same,
// and no other could join as long as it is.
func (w work) takeBack(ctx context.Context, fresh []adapter.Member, reason error) error {
	clean, cancel := w.Cleanup(ctx)
	defer cancel()
	if clean.Err() != nil {
		return reason // this is not the end: the operation goes on
	}
	w.Progress("undoing", 10, "removing "+machine.Names(fresh))
	var err error
	for _, member := range fresh {
		err = errors.Join(err, w.end(clean, member, "back."))
		if by, missing := w.witness(fresh); missing == nil {
			err = errors.Join(err, w.forget(clean, by, member, "back."))
		}
		err = errors.Join(err, w.Member(member.ID, adapter.MemberFailed, adapter.HealthUnknown, nil))
	}
	if err != nil {
		w.Log().Warn("not everything was undone", "error", err)
	}
	return reason
}

// recoverMembers brings members up again from nothing: what the cluster remembers of them goes first.
func recoverMembers(ctx context.Context, w work) error {
	targets := w.Targets()
	by, err := w.witness(targets)
	if err != nil && len(w.Of(machine.Server)) > len(serversOf(targets)) {
		return err
	}
	if err != nil {
		return w.restart(ctx, targets)
	}
	for _, member := range targets {
		if err := w.end(ctx, member, ""); err != nil {
			return err
		}
		if err := w.forget(ctx, by, member, ""); err != nil {
			return err
		}
		wipe := adapter.RunCommand{Command: machine.Shell(`rm -rf "$R` + machine.EtcdPath + `" "$R/etc/rancher/node"`)}
		if _, err := w.Do(ctx, member, "wipe", wipe, adapter.Within(time.Minute)); err != nil {
			return err
		}
	}
	if err := w.joinAll(ctx, targets, by); err != nil {
		return err
	}
	return w.Evidence("recovered", len(targets))
}

func serversOf(members []adapter.Member) (list []adapter.Member) {
	for _, member := range members {
		if member.ComponentKey == machine.Server {
			list = append(list, member)
		}
	}
	return list
}

// restart starts all servers over the data that they have: where none serves, none may be wiped.
func (w work) restart(ctx context.Context, targets []adapter.Member) error {
	servers := serversOf(targets)
	for i, member := range servers {
		if err := w.end(ctx, member, ""); err != nil {
			return err
		}
		var by *adapter.Member
		if i > 0 {
			by = &servers[0]
		}
		if err := w.joinOne(ctx, member, by); err != nil {
			return err
		}
	}
	if err := w.joinAll(ctx, machine.Without(targets, servers), servers[0]); err != nil {
		return err
	}
	return w.Evidence("recovered", len(targets))
}
