package endpoint

import (
	"net/url"
	"strings"

	"github.com/gpuaas/app-platform/domain/ids"
)

// between separates the name of an endpoint, which does not contain it, from the id.
const between = "--"

// RedeemPath is where a ticket is used, at the host of its endpoint.
const RedeemPath = "/.platform/open"

// Host returns the host of an endpoint of an instance: NAME--ID.APPS, with the instance's id without its prefix. Empty
// where browsers open none.
func (s *Service) Host(name string, instance ids.ID) string {
	if s.Apps == nil {
		return ""
	}
	return name + between + instance.Suffix() + "." + s.Apps.Host
}

// Origin returns the origin of an endpoint; empty where browsers open none.
func (s *Service) Origin(name string, instance ids.ID) string {
	if s.Apps == nil {
		return ""
	}
	return (&url.URL{Scheme: s.Apps.Scheme, Host: s.Host(name, instance)}).String()
}

// ParseHost returns whose host it is; not ok when it is not an endpoint's. Ours reports whether it lies below the apps'
// domain, where nothing else is served. The port is ignored: a proxy may listen on another.
func (s *Service) ParseHost(host string) (name string, instance ids.ID, ours, ok bool) {
	if s.Apps == nil {
		return "", "", false, false
	}
	label, below := strings.CutSuffix(strings.ToLower(bare(host)), "."+s.Apps.Hostname())
	if !below {
		return "", "", false, false
	}
	name, suffix, cut := strings.Cut(label, between)
	instance, err := ids.Parse(ids.Instance, string(ids.Instance)+"_"+suffix)
	return name, instance, true, cut && name != "" && err == nil
}

// bare is a host without its port.
func bare(host string) string {
	if at := strings.LastIndexByte(host, ':'); at >= 0 && !strings.HasSuffix(host, "]") {
		host = host[:at]
	}
	return strings.TrimSuffix(host, ".")
}
