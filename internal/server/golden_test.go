package server

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"soniq/internal/api/mcp"
	"soniq/internal/api/rest"
	"soniq/internal/api/webhook"
	"soniq/internal/config"
	"soniq/internal/platform/op"
)

var update = flag.Bool("update", false, "rewrite the files that are kept in the tree")

// TestGoldenDescription holds the published description against the copy in the tree, so that a change of the contract is seen
// in a review. make golden rewrites it.
func TestGoldenDescription(t *testing.T) {
	golden(t, filepath.Join("..", "api", "rest", "testdata", "openapi.json"), append(describe(t), '\n'))
}

// TestGoldenTools does the same for what assistants are told of the tools: names, scopes, hints and schemas.
func TestGoldenTools(t *testing.T) {
	d := door(t)
	tools := mcp.New(mcp.Config{Operations: d.Operations, Document: d.Document, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	defer tools.Close()
	all, err := tools.Tools()
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, filepath.Join("..", "api", "mcp", "testdata", "tools.json"), append(got, '\n'))
}

// golden holds what is made against the copy in the tree.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		line := differs(got, want)
		t.Errorf("what is made differs from %s at line %d; if that is meant: make golden, and look at the difference", path, line)
	}
}

// describe makes the description as a server of a fresh folder would.
func describe(t *testing.T) []byte {
	t.Helper()
	text, err := door(t).Document()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// door is the HTTP door of a server of a fresh folder; only what needs no database can be asked of it.
func door(t *testing.T) *rest.Server {
	t.Helper()
	c, err := config.Load("serve", []string{"--data", t.TempDir(), "--transcriber", "off"}, io.Discard, nil)
	if err != nil {
		t.Fatal(err)
	}
	h, err := Open(context.Background(), c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	s, err := rest.New(rest.Config{Corridor: &op.Pipeline{DB: h.db, Sealer: h.seal, Now: time.Now}, Operations: h.operations(), Keys: h.keys,
		Ready: func(context.Context) error { return nil }, Metrics: http.NotFoundHandler(), Log: slog.New(slog.DiscardHandler),
		Describe: webhook.Describe})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// differs is the first line that is not the same.
func differs(a, b []byte) int {
	other := bytes.Split(b, []byte("\n"))
	for i, line := range bytes.Split(a, []byte("\n")) {
		if i >= len(other) || !bytes.Equal(line, other[i]) {
			return i + 1
		}
	}
	return len(other)
}
