package dev

import (
	"encoding/json"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

func (s *Session) upgrade(words []string, rest string) error {
	i, err := s.settled()
	if err != nil {
		return err
	}
	if len(words) == 0 {
		return badLine("name a version")
	}
	to := adapter.VersionConfig{Version: words[0], Config: i.Wire.Config}
	if text := strings.TrimSpace(strings.TrimPrefix(rest, words[0])); text != "" {
		if to.Config = json.RawMessage(text); !json.Valid(to.Config) {
			return badLine("the config is not JSON")
		}
	}
	return s.move(i, adapter.InstanceUpgrade, to)
}

func (s *Session) rollback([]string, string) error {
	i, err := s.settled()
	if err != nil {
		return err
	}
	if i.before == nil {
		return badLine("the instance was not upgraded")
	}
	return s.move(i, adapter.InstanceRollback, *i.before)
}

// move brings the instance to another version. It has the old one again when the adapter refuses.
func (s *Session) move(i *instance, kind adapter.Kind, to adapter.VersionConfig) error {
	from := adapter.VersionConfig{Version: i.Wire.Version, Config: i.Wire.Config}
	i.Wire.Version, i.Wire.Config = to.Version, to.Config
	err := s.dispatch(i, kind, adapter.VersionChange{From: from, To: to}, false)
	if err != nil {
		i.Wire.Version, i.Wire.Config = from.Version, from.Config
		return err
	}
	i.before = &from
	return nil
}
