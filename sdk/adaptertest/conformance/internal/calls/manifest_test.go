package calls

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTextsOfASchemaMayDifferAndNothingElse(t *testing.T) {
	t.Parallel()
	stated := `{"type":"object","title":"A","properties":{"description":{"type":"string","description":"old","enum":["title"]}},
		"allOf":[{"required":["description"],"$comment":"x"}],"default":{"title":"x"}}`
	for name, one := range map[string]struct {
		said string
		same bool
	}{
		"the same": {stated, true},
		"other texts": {`{"type":"object","properties":{"description":{"type":"string","description":"new","enum":["title"]}},
			"allOf":[{"required":["description"]}],"default":{"title":"x"}}`, true},
		"a property less": {`{"type":"object","properties":{},"allOf":[{"required":["description"]}],"default":{"title":"x"}}`, false},
		"another default": {`{"type":"object","properties":{"description":{"type":"string","enum":["title"]}},
			"allOf":[{"required":["description"]}],"default":{}}`, false},
		"another value": {`{"type":"object","properties":{"description":{"type":"string","enum":[]}},
			"allOf":[{"required":["description"]}],"default":{"title":"x"}}`, false},
		"another rule": {`{"type":"object","properties":{"description":{"type":"string","enum":["title"]}},
			"allOf":[{}],"default":{"title":"x"}}`, false},
		"none": {``, false},
	} {
		require.Equal(t, one.same, sameSchema(json.RawMessage(one.said), json.RawMessage(stated)), name)
	}
}
