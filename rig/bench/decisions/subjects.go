// Package decisions measures what the platform decides in memory: permissions, policy, and signed tokens.
package decisions

import "github.com/gpuaas/app-platform/rig/bench/kit"

// Subjects are what this package measures, in order.
var Subjects = []kit.Subject{
	{Name: "permission", Measure: measurePermission},
	{Name: "policy", Measure: measurePolicy},
	{Name: "token", Measure: measureToken},
}
