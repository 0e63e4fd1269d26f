package server

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAServerThatCannotBeginIsNotTakenForOneThatWasStopped(t *testing.T) {
	t.Parallel()
	wrong, other := errors.New("certificate: no such file"), errors.New("the database is gone")
	require.Equal(t, wrong, whyNot(wrong, fmt.Errorf("feed: %w", context.Canceled)))
	require.Equal(t, wrong, whyNot(wrong, nil).(interface{ Unwrap() []error }).Unwrap()[0])
	require.ErrorIs(t, whyNot(wrong, other), other)
}
