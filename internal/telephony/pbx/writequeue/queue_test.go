package writequeue

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// failingStore is a database that fails until a time.
type failingStore struct {
	until   time.Time
	written []string
	tries   int
}

func (a *failingStore) write(name string) func(context.Context) error {
	return func(context.Context) error {
		if a.tries++; time.Now().Before(a.until) {
			return errors.New("disk is full")
		}
		a.written = append(a.written, name)
		return nil
	}
}

func TestWriteQueue_OrderAfterOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, d := &Queue{log: slog.New(slog.DiscardHandler), callID: new(string)}, &failingStore{until: time.Now().Add(10 * time.Minute)}
		for _, name := range []string{"answer", "hold", "end"} {
			l.Write(t.Context(), name, d.write(name))
		}
		if len(d.written) != 0 {
			t.Fatalf("written while the disk is full: %v", d.written)
		}
		start := time.Now()
		l.Drain(t.Context())
		if want := []string{"answer", "hold", "end"}; !slices.Equal(d.written, want) {
			t.Errorf("written %v, want %v", d.written, want)
		}
		if late := time.Since(start) - 10*time.Minute; late < 0 || late > LastRetry {
			t.Errorf("written %s after the database was back", late)
		}
		if d.tries > 60 {
			t.Errorf("%d tries in ten minutes", d.tries)
		}
	})
}

func TestWriteQueue_LaterWriteFlushesEarlier(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, d := &Queue{log: slog.New(slog.DiscardHandler), callID: new(string)}, &failingStore{until: time.Now().Add(time.Second)}
		l.Write(t.Context(), "answer", d.write("answer"))
		<-time.After(2 * time.Second)
		l.Write(t.Context(), "end", d.write("end"))
		if want := []string{"answer", "end"}; !slices.Equal(d.written, want) {
			t.Errorf("written %v, want %v", d.written, want)
		}
	})
}

func TestWriteQueue_DrainEndsWithContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, d := &Queue{log: slog.New(slog.DiscardHandler), callID: new(string)}, &failingStore{until: time.Now().Add(1000 * time.Hour)}
		l.Write(t.Context(), "end", d.write("end"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		if l.Drain(ctx); time.Since(start) != time.Minute {
			t.Errorf("settled for %s, want a minute", time.Since(start))
		}
	})
}

// A started write does not block the next one, and is not lost if it fails.
func TestWriteQueue_StartedWriteCheckedByNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, d := &Queue{log: slog.New(slog.DiscardHandler), callID: new(string)}, &failingStore{until: time.Now().Add(time.Second)}
		l.StartWrite(t.Context(), "ringing", func(ctx context.Context) func() error {
			return func() error { return d.write("ringing")(ctx) }
		})
		if d.tries != 0 {
			t.Error("somebody waited for what is under way")
		}
		l.Write(t.Context(), "answer", d.write("answer"))
		if len(d.written) != 0 || len(l.pending) != 2 {
			t.Errorf("written %v, kept %d facts, want none and two", d.written, len(l.pending))
		}
		l.Drain(t.Context())
		if want := []string{"ringing", "answer"}; !slices.Equal(d.written, want) {
			t.Errorf("written %v, want %v", d.written, want)
		}
	})
}

// A queue in the background does not wait, keeps the order, and Drain waits for all.
func TestWriteQueue_BackgroundDoesNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, d := New(slog.New(slog.DiscardHandler), new(string)), &failingStore{until: time.Now().Add(time.Minute)}
		l.StartWrite(t.Context(), "ringing", func(ctx context.Context) func() error {
			return func() error { return d.write("ringing")(ctx) }
		})
		l.Background()
		began := time.Now()
		l.Write(t.Context(), "answer", d.write("answer"))
		l.StartWrite(t.Context(), "hold", func(ctx context.Context) func() error { return func() error { return d.write("hold")(ctx) } })
		l.FinishStarted(t.Context())
		l.Write(t.Context(), "end", d.write("end"))
		if time.Since(began) != 0 {
			t.Errorf("the writer waited for %s", time.Since(began))
		}
		l.Drain(t.Context())
		if want := []string{"ringing", "answer", "hold", "end"}; !slices.Equal(d.written, want) {
			t.Errorf("written %v, want %v", d.written, want)
		}
		l.Write(t.Context(), "later", d.write("later"))
		if l.Drain(t.Context()); len(d.written) != 5 {
			t.Errorf("a later write is missing: %v", d.written)
		}
	})
}

func TestWriteQueue_BackgroundDrainEndsWithContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, d := New(slog.New(slog.DiscardHandler), new(string)), &failingStore{until: time.Now().Add(1000 * time.Hour)}
		l.Background()
		l.Write(t.Context(), "end", d.write("end"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		if l.Drain(ctx); time.Since(start) != time.Minute {
			t.Errorf("settled for %s, want a minute", time.Since(start))
		}
	})
}
