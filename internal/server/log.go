package server

import (
	"io"
	"log/slog"
)

// DiscardLog is a log that keeps to itself.
func DiscardLog() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }
