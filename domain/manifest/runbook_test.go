package manifest

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTriageBeginsFromTheCorrelationIDAndGoesOn(t *testing.T) {
	t.Parallel()
	first, then := TriageStep{By: ByCorrelation, Do: "a"}, TriageStep{By: "event", Do: "b"}
	for _, c := range []struct {
		want  bool
		steps []TriageStep
	}{
		{true, []TriageStep{first, then}}, {false, nil}, {false, []TriageStep{first}},
		{false, []TriageStep{then, first}},
	} {
		require.Equal(t, c.want, Runbook{Triage: c.steps}.CorrelationFirst(), "%v", c.steps)
	}
}

func TestTheSchemaKnowsWhatTriageBeginsFrom(t *testing.T) {
	t.Parallel()
	var schema struct {
		Defs struct {
			Runbook struct {
				Properties struct {
					Triage struct {
						Items struct {
							Properties struct {
								By struct {
									Enum []string `json:"enum"`
								} `json:"by"`
							} `json:"properties"`
						} `json:"items"`
					} `json:"triage"`
				} `json:"properties"`
			} `json:"runbook"`
		} `json:"$defs"`
	}
	require.NoError(t, json.Unmarshal(DocumentSchema(), &schema))
	require.Equal(t, TriageBy(), schema.Defs.Runbook.Properties.Triage.Items.Properties.By.Enum)
}
