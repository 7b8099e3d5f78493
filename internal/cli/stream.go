package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// message is one event of the live stream.
type message struct {
	id, event, data string // id is the sequence; "" where the event is not kept
}

// errEnough ends following without an error.
var errEnough = errors.New("enough")

const (
	silence    = 45 * time.Second // longer than the stream is ever quiet
	firstPause = 500 * time.Millisecond
	lastPause  = 15 * time.Second
)

// follow gives every event of the live stream to handle, in order, until the context ends or handle returns an error; errEnough is
// none. A stream that was lost is opened again where it ended.
func (r *remote) follow(ctx context.Context, q url.Values, ready func(), handle func(message) error) error {
	wait, last := firstPause, q.Get("after_sequence")
	for {
		began := time.Now()
		err := r.once(ctx, q, &last, func() { wait = firstPause; ready() }, handle)
		var refused *problem
		switch {
		case ctx.Err() != nil, errors.Is(err, errEnough):
			return nil
		case errors.As(err, &refused) && codeOf(refused.Status) != exitUnreached && refused.Status != http.StatusTooManyRequests:
			return err
		case errors.As(err, new(*lost)) || ExitCode(err) == exitUnreached || refused != nil:
		default:
			return err
		}
		if refused != nil {
			if seconds, _ := strconv.Atoi(refused.Retry); seconds > 0 {
				wait = min(time.Duration(seconds)*time.Second, lastPause)
			}
		}
		fmt.Fprintf(r.note, "%s  the stream was lost (%v); again in %s\n", time.Now().Format("15:04:05"), err, wait)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		if wait = min(2*wait, lastPause); time.Since(began) > time.Minute {
			wait = firstPause
		}
	}
}

// lost says that a stream ended.
type lost struct{ error }

// once reads one stream to its end.
func (r *remote) once(ctx context.Context, q url.Values, last *string, ready func(), handle func(message) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	quiet := time.AfterFunc(silence, cancel)
	defer quiet.Stop()
	header := http.Header{"Accept": {"text/event-stream"}}
	if *last != "" {
		header.Set("Last-Event-Id", *last)
	}
	answer, err := r.ask(ctx, "GET", "/events/stream?"+q.Encode(), nil, header)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	lines := bufio.NewReaderSize(answer.Body, 64<<10)
	var m message
	for welcomed := false; ; {
		text, err := lines.ReadString('\n')
		if err != nil {
			return &lost{err}
		}
		quiet.Reset(silence)
		name, value, _ := strings.Cut(strings.TrimRight(text, "\r\n"), ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "id":
			m.id = value
		case "event":
			m.event = value
		case "data":
			m.data = value
		}
		if text != "\n" {
			continue
		}
		if m.event != "" {
			if err := handle(m); err != nil {
				return err
			}
		}
		if m.id != "" {
			*last = m.id
		}
		m = message{}
		if !welcomed {
			welcomed = true
			ready()
		}
	}
}
