package machine

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

func TestAListThatTheNodeHasCutIsReadAsAPart(t *testing.T) {
	t.Parallel()
	const line = "shop web-%d u%d 2026-01-02T03:04:05Z Running |ReplicaSet||app=web \n"
	text := fmt.Sprintf(line+line+line, 1, 1, 2, 2, 3, 3)
	list, more := PodsOf(adapter.TaskResult{Stdout: text})
	require.Len(t, list, 3)
	require.False(t, more)
	list, more = PodsOf(adapter.TaskResult{Stdout: text[2:], Truncated: true})
	require.True(t, more)
	require.Equal(t, []string{"web-2", "web-3"}, []string{list[0].Name, list[1].Name}, "half a line is no pod")
}

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
		require.NoError(t,
			json.Unmarshal([]byte(`{"metadata":{"namespace":"shop","name":"keep"},"spec":{"selector":`+text+
				`},"status":{"disruptionsAllowed":0}}`), &budget))
		said := pod.Work(adapter.Member{ID: "mem_a"}, []Budget{budget}).Message
		require.Equal(t, named, said == "the disruption budget shop/keep allows 0 disruptions now", "%s: %s",
			text, said)
	}
}
