package machine

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

func TestAPodThatWaitsNamesTheBudgetThatKeepsIt(t *testing.T) {
	t.Parallel()
	pod := Pod{Namespace: "shop", Name: "web-1", UID: "u1", Labels: map[string]string{"app": "web", "tier": "front"}}
	for text, named := range map[string]bool{
		`{"matchLabels":{"app":"web"}}`:                                                      true,
		`{"matchLabels":{"app":"db"}}`:                                                       false,
		`{"matchExpressions":[{"key":"app","operator":"In","values":["db","web"]}]}`:         true,
		`{"matchExpressions":[{"key":"app","operator":"NotIn","values":["web"]}]}`:           false,
		`{"matchExpressions":[{"key":"zone","operator":"NotIn","values":["a"]}]}`:            true,
		`{"matchExpressions":[{"key":"tier","operator":"Exists"}]}`:                          true,
		`{"matchExpressions":[{"key":"tier","operator":"DoesNotExist"}]}`:                    false,
		`{"matchLabels":{"app":"web"},"matchExpressions":[{"key":"x","operator":"Exists"}]}`: false,
		`{"matchExpressions":[{"key":"tier","operator":"Near","values":["front"]}]}`:         false,
		`{}`: true,
	} {
		var budget Budget
		require.NoError(t, json.Unmarshal([]byte(`{"metadata":{"namespace":"shop","name":"keep"},"spec":{"selector":`+text+
			`},"status":{"disruptionsAllowed":0}}`), &budget))
		said := pod.Work(adapter.Member{ID: "mem_a"}, []Budget{budget}).Message
		require.Equal(t, named, said == "the disruption budget shop/keep allows 0 disruptions now", "%s: %s", text, said)
	}
}
