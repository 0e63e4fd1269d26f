package cli_test

import "github.com/gpuaas/app-platform/sdk/client/clienttest"

func volume() object {
	return object{"id": "vol_1", "projectId": "prj_1", "name": "home", "sizeGiB": 20, "status": "READY",
		"usedBytes":    5368709120,
		"storageClass": object{"id": "stc_1", "name": "parallel", "kind": "SHARED"}, "measuredAt": at, "message": "",
		"users": []object{{"instanceId": "ins_1", "instanceName": "one", "slot": "home", "path": "/home",
			"readOnly": true}},
		"createdBy": "usr_1", "createdAt": at, "hourlyCost": object{"currency": "EUR", "amount": "0.004000"}}
}

// addVolumeFixtures gives the stand-in the verbs of volumes and storage classes.
func addVolumeFixtures(s *clienttest.Server) {
	class := object{"id": "stc_1", "name": "parallel", "kind": "SHARED", "title": "Parallel files", "description": "",
		"disabled": false, "createdAt": at, "updatedAt": at,
		"offer": object{"nodes": 3, "totalBytes": 2199023255552, "freeBytes": 1099511627776,
			"sizeEnforced": false},
		"hourlyListPrices": []object{{"currency": "EUR", "amount": "0.000200"},
			{"currency": "USD", "amount": "0.000220"}}}
	unserved := object{"id": "stc_2", "name": "disk", "kind": "LOCAL", "title": "A node's disk", "description": "",
		"disabled": true, "createdAt": at, "updatedAt": at, "hourlyListPrices": []object{}}
	fresh := volume()
	fresh["id"], fresh["name"], fresh["usedBytes"], fresh["users"] = "vol_2", "scratch", nil, []object{}
	for field, value := range map[string]any{
		"storageClasses": []object{unserved, class}, "createStorageClass": class, "updateStorageClass": class,
		"volumes": page(volume(), fresh), "volume": volume(), "createVolume": fresh, "resizeVolume": volume(),
		"deleteVolume": volume(), "planCreateVolume": object{"volume": fresh,
			"hourlyAfter": object{"currency": "EUR", "amount": "0.004000"}},
		"planResizeVolume": object{"volume": volume(), "hourlyBefore": object{"currency": "EUR", "amount": "0.002000"},
			"hourlyAfter": object{"currency": "EUR", "amount": "0.004000"}},
	} {
		s.Handle(field, answer(value))
	}
}
