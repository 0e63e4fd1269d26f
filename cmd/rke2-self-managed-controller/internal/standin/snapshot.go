package standin

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// snapshot is rke2 etcd-snapshot save: it writes what etcd holds into a file of the server's data folder.
func (s store) snapshot(args []string, stdout io.Writer) error {
	if len(args) == 0 || args[0] != "save" {
		return refuse("rke2 etcd-snapshot (stand-in): only save is supported")
	}
	set := flag.NewFlagSet("etcd-snapshot", flag.ContinueOnError)
	data := set.String("data-dir", "/var/lib/rancher/rke2", "")
	name := set.String("name", "on-demand", "")
	if err := set.Parse(args[1:]); err != nil {
		return err
	}
	raw, err := os.ReadFile(filepath.Join(*data, "server/db/etcd/identity.json"))
	if err != nil {
		return refuse("etcd-snapshot: this is not a server: %v", err)
	}
	var me identity
	if err := json.Unmarshal(raw, &me); err != nil {
		return err
	}
	c, err := s.read(me.Key)
	if err != nil {
		return err
	}
	if !s.alive(me.Key, me.Node) || !s.quorum(me.Key, c) {
		return refuse("etcd-snapshot: see server log for details: the server does not answer")
	}
	held, err := json.Marshal(c)
	if err != nil {
		return err
	}
	file := fmt.Sprintf("%s-%s-%d", *name, me.Node, time.Now().UnixNano())
	fmt.Fprintf(stdout, "Snapshot %s saved.\n", file)
	return write(filepath.Join(*data, "server/db/snapshots", file), held)
}

// reset is rke2 server --cluster-reset --cluster-reset-restore-path: etcd holds what the snapshot does, and this server
// is its only member. What etcd held is moved aside before the snapshot is read, and a flag is left in the end.
func (s store) reset(with settings, token string, stderr io.Writer) error {
	if with.keys["server"] != "" {
		return refuse("cannot perform cluster-reset while server URL is set - " +
			"remove server from configuration before resetting")
	}
	if _, err := os.Stat(with.restore); err != nil {
		return refuse("etcd: snapshot path does not exist: %s", with.restore)
	}
	_, _, password := split(token)
	me := identity{Key: "c" + digest(password)[:24], Node: with.keys["node-name"]}
	if s.alive(me.Key, me.Node) {
		return refuse("etcd: the server runs: stop it first")
	}
	database := filepath.Join(with.data, "server/db")
	aside := fmt.Sprintf("%s-old-%d", filepath.Join(database, "etcd"), time.Now().UnixNano())
	if err := os.Rename(filepath.Join(database, "etcd"), aside); err != nil {
		return err
	}
	held, err := os.ReadFile(with.restore)
	if err != nil {
		return err
	}
	var then cluster
	if err := json.Unmarshal(held, &then); err != nil {
		return refuse("etcd: the snapshot is incomplete: %v", err)
	}
	own := ensure(filepath.Join(filepath.Dir(with.config), "../node/password"))
	err = s.change(me.Key, func(c *cluster) error {
		*c = then
		c.Leader = me.Node
		c.Etcd = []etcdMember{{ID: number(), Name: me.Node + "-" + digest(me.Node)[:8], Node: me.Node,
			PeerURLs: []string{"https://" + with.keys["node-ip"] + ":2380"}}}
		c.Passwords[me.Node] = own
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(stderr, "Managed etcd cluster membership has been reset, restart without --cluster-reset flag now.")
	id, err := json.Marshal(me)
	if err != nil {
		return err
	}
	return errors.Join(write(filepath.Join(database, "etcd/identity.json"), id),
		write(filepath.Join(database, resetFlag), nil))
}

// resetFlag is left by a reset until the server is started.
const resetFlag = "reset-flag"
