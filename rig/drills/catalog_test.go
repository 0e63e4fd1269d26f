package drills_test

import (
	"encoding/json"

	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// launchesOn makes the walk about a launch on capacity of the drill's own.
func (w *ward) launchesOn(change func(in *gql.LaunchInstanceInput)) {
	w.t.Helper()
	allocation := w.rent()
	w.refused(func() error {
		_, operation, err := w.launching(func(in *gql.LaunchInstanceInput) {
			in.AllocationIds = []string{allocation}
			change(in)
		})
		if err == nil {
			w.succeeds(operation)
		}
		return err
	})
}

// catalogDrills are those of what cannot be launched.
var catalogDrills = map[string]drill{
	"catalog/start/not-entitled": {
		quick: true,
		fault: func(w *ward) {
			_, err := gql.RevokeEntitlement(w.ctx, w.admin, w.project, "hello-cluster", "a drill")
			w.fine(err)
			w.launchesOn(func(*gql.LaunchInstanceInput) {})
		},
		cure: func(w *ward) {
			_, err := gql.GrantEntitlement(w.ctx, w.admin, w.project, "hello-cluster", nil, nil, "")
			w.fine(err)
		},
	},
	"catalog/start/not-found-for-the-app": {
		fault: func(w *ward) {
			account, caller := w.account("project.read", "entitlement.read", "scheduler.catalog.read")
			w.refused(func() error { _, err := gql.GetEntitled(w.ctx, caller, "hello-cluster", w.project); return err })
			w.mend = func() {
				_, err := gql.UpdateServiceAccount(w.ctx, w.admin,
					gql.UpdateServiceAccountInput{ServiceAccountId: account,
						PermissionKeys: []string{"project.read", "entitlement.read", "apps.catalog.read"},
						Reason:         "the runbook says so"})
				w.fine(err)
			}
		},
		cure: func(w *ward) { w.mend() },
	},
	"catalog/start/allocation-in-use": {
		fault: func(w *ward) {
			allocation := w.rent()
			first, operation, err := w.launching(func(in *gql.LaunchInstanceInput) {
				in.AllocationIds = []string{allocation}
			})
			w.fine(err)
			w.succeeds(operation)
			w.about.ID = first
			w.refused(func() error {
				_, operation, err := w.launching(func(in *gql.LaunchInstanceInput) {
					in.AllocationIds = []string{allocation}
				})
				if err == nil {
					w.succeeds(operation)
				}
				return err
			})
		},
		cure: func(w *ward) { w.succeeds(w.decommission(w.about.ID, false)) },
	},
	"catalog/start/config-invalid": {
		fault: func(w *ward) {
			config := `{"greeting": 7}`
			w.launchesOn(func(in *gql.LaunchInstanceInput) { in.Config = json.RawMessage(config) })
			w.mend = func() { config = `{"greeting": "Good day"}` }
		},
		cure: func(w *ward) { w.mend() },
	},
	"catalog/start/count-out-of-bounds": {
		fault: func(w *ward) {
			count := 99
			w.launchesOn(func(in *gql.LaunchInstanceInput) { in.Components[0].Count = count })
			w.mend = func() { count = 1 }
		},
		cure: func(w *ward) { w.mend() },
	},
}
