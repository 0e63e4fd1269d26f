package change

import (
	"encoding/json"
	"slices"

	"github.com/gpuaas/app-platform/ent/generated/db"
)

// Description is what an adapter reports of an app, as far as a change reads it.
type Description struct {
	Slug           string   `json:"slug"`
	Operations     []string `json:"operations"`
	ChoosesLeaving bool     `json:"choosesLeaving"`
}

// Described returns what a registered adapter reports of an app by name; the zero Description without a report.
func Described(adapter *db.Adapter, app string) Description {
	var described struct {
		Apps []Description `json:"apps"`
	}
	if adapter == nil || json.Unmarshal(adapter.Description, &described) != nil {
		return Description{}
	}
	at := slices.IndexFunc(described.Apps, func(one Description) bool { return one.Slug == app })
	if at < 0 {
		return Description{}
	}
	return described.Apps[at]
}
