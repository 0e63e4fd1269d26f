package wsapi_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestQueryAndMutationAnswerOnceThenComplete(t *testing.T) {
	t.Parallel()
	c := setup(t, nil).connect(t)
	c.send(`{"id":"q","type":"subscribe","payload":{"query":"{ hello }"}}`)
	require.JSONEq(t, `{"id":"q","type":"next","payload":{"data":{"hello":"hello"}}}`, c.receive())
	require.JSONEq(t, `{"id":"q","type":"complete"}`, c.receive())
	c.send(`{"id":"m","type":"subscribe","payload":{"query":"mutation($id: ID!) { touch(id: $id) { id name } }","variables":{"id":"7"}}}`)
	require.JSONEq(t, `{"id":"m","type":"next","payload":{"data":{"touch":{"id":"7","name":"touched"}}}}`, c.receive())
	require.JSONEq(t, `{"id":"m","type":"complete"}`, c.receive())
}

func TestSubscriptionSendsEachEventInOrderThenComplete(t *testing.T) {
	t.Parallel()
	c := setup(t, nil).connect(t)
	c.send(`{"id":"s","type":"subscribe","payload":{"query":"subscription { count(to: 3) }"}}`)
	for _, want := range []string{"1", "2", "3"} {
		require.JSONEq(t, `{"id":"s","type":"next","payload":{"data":{"count":`+want+`}}}`, c.receive())
	}
	require.JSONEq(t, `{"id":"s","type":"complete"}`, c.receive())
}
