package server

import (
	"context"
	"log/slog"
	"slices"
	"testing"
)

func TestClosers_LastOpenedFirst(t *testing.T) {
	t.Parallel()
	var c closers
	var order []string
	for _, name := range []string{"media", "sip", "http"} {
		c.push(name, func(context.Context) { order = append(order, name) })
	}
	c.close(t.Context(), slog.New(slog.DiscardHandler))
	c.close(t.Context(), slog.New(slog.DiscardHandler))
	if !slices.Equal(order, []string{"http", "sip", "media"}) {
		t.Errorf("stopped in the order %v", order)
	}
}
