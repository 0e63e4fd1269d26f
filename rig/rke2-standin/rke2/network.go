package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/vishvananda/netlink"
)

// cniDir is where RKE2 keeps the configuration of networks.
const cniDir = "/etc/cni/net.d"

// routeRound is how often the routes are held to the Nodes, and protocol marks those that are this program's.
const (
	routeRound = 2 * time.Second
	protocol   = 88
)

// routes gives the pods of this node a bridge, and a route to those of each other node: what a network plugin does.
func routes(ctx context.Context, s settings, api apiClient) {
	said := ""
	for ctx.Err() == nil {
		bounded, cancel := context.WithTimeout(ctx, 10*time.Second)
		err := s.connect(bounded, api)
		cancel()
		if err != nil && err.Error() != said {
			said = err.Error()
			fmt.Fprintln(os.Stderr, "network:", said)
		}
		wait(ctx, routeRound)
	}
}

type nodeList struct {
	Items []struct {
		Metadata struct{ Name string }
		Spec     struct{ PodCIDR string }
		Status   struct {
			Addresses []struct{ Type, Address string }
		}
	}
}

func (s settings) connect(ctx context.Context, api apiClient) error {
	raw, err := api.do(ctx, http.MethodGet, "/api/v1/nodes?limit=500", nil)
	if err != nil {
		return err
	}
	var list nodeList
	if err := json.Unmarshal(raw, &list); err != nil {
		return err
	}
	wanted := map[string]string{}
	for _, node := range list.Items {
		if node.Metadata.Name == s.nodeName() {
			if err := network(node.Spec.PodCIDR); err != nil {
				return err
			}
			continue
		}
		for _, address := range node.Status.Addresses {
			if address.Type == "InternalIP" && node.Spec.PodCIDR != "" {
				wanted[node.Spec.PodCIDR] = address.Address
			}
		}
	}
	return reroute(wanted)
}

// network writes the configuration of pods' network, once this node's block is known.
func network(block string) error {
	path := cniDir + "/10-rke2-standin.conflist"
	if block == "" {
		return errors.New("the Node has no block of addresses yet")
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{"cniVersion": "1.0.0", "name": "rke2-standin", "plugins": []any{
		map[string]any{"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
			"ipam": map[string]any{"type": "host-local", "ranges": []any{[]any{map[string]string{"subnet": block}}},
				"routes": []any{map[string]string{"dst": "0.0.0.0/0"}}}},
	}})
	if err != nil {
		return err
	}
	if kept, err := os.ReadFile(path); err == nil && string(kept) == string(config) {
		return nil
	}
	return write(path, config, 0o600)
}

// reroute makes the routes of this program those that are wanted: a block, and the node that it is at.
func reroute(wanted map[string]string) error {
	have, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Protocol: protocol},
		netlink.RT_FILTER_PROTOCOL)
	if err != nil {
		return err
	}
	for _, route := range have {
		if route.Dst != nil && wanted[route.Dst.String()] != route.Gw.String() {
			err = errors.Join(err, netlink.RouteDel(&route))
		}
	}
	for block, via := range wanted {
		_, to, parseErr := net.ParseCIDR(block)
		if parseErr != nil {
			err = errors.Join(err, parseErr)
			continue
		}
		err = errors.Join(err, netlink.RouteReplace(&netlink.Route{Dst: to, Gw: net.ParseIP(via), Protocol: protocol}))
	}
	return err
}
