package remote

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

	"soniq/internal/cli/command"
)

// This file reads the live event stream (Server-Sent Events) and reconnects when it is lost.

// streamEvent is one event of the live stream.
type streamEvent struct {
	id, event, data string // id is the sequence; "" if the event is not stored
}

// errStop ends follow without an error.
var errStop = errors.New("stop")

const (
	streamIdleTimeout = 45 * time.Second // longer than the interval of the server's keep-alive comments
	firstPause        = 500 * time.Millisecond
	lastPause         = 15 * time.Second
)

// follow calls handle for every event of the live stream, in order, until the context ends or handle returns an error. errStop from handle
// ends it without an error. If the stream is lost it connects again and resumes after the last event. ready is called once for each
// connection, when the server has confirmed it.
func (c *client) follow(ctx context.Context, q url.Values, ready func(), handle func(streamEvent) error) error {
	wait, last := firstPause, q.Get("after_sequence")
	for {
		began := time.Now()
		err := c.readStream(ctx, q, &last, func() { wait = firstPause; ready() }, handle)
		var refused *command.Problem
		switch {
		case ctx.Err() != nil, errors.Is(err, errStop):
			return nil
		case errors.As(err, &refused) && command.ExitCodeOf(refused.Status) != command.ExitUnreached &&
			refused.Status != http.StatusTooManyRequests:
			return err
		case errors.As(err, new(*streamLost)) || command.ExitCode(err) == command.ExitUnreached || refused != nil:
		default:
			return err
		}
		if refused != nil {
			if seconds, _ := strconv.Atoi(refused.Retry); seconds > 0 {
				wait = min(time.Duration(seconds)*time.Second, lastPause)
			}
		}
		fmt.Fprintf(c.note, "%s  the stream was lost (%v); again in %s\n", time.Now().Format("15:04:05"), err, wait)
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

// streamLost is the error for a stream that ended.
type streamLost struct{ error }

// readStream reads one stream until it ends or handle returns an error. last is the sequence of the last event.
func (c *client) readStream(ctx context.Context, q url.Values, last *string, ready func(), handle func(streamEvent) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	idle := time.AfterFunc(streamIdleTimeout, cancel)
	defer idle.Stop()
	header := http.Header{"Accept": {"text/event-stream"}}
	if *last != "" {
		header.Set("Last-Event-Id", *last)
	}
	response, err := c.send(ctx, "GET", "/events/stream?"+q.Encode(), nil, header)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := bufio.NewReaderSize(response.Body, 64<<10)
	var m streamEvent
	for confirmed := false; ; {
		text, err := lines.ReadString('\n')
		if err != nil {
			return &streamLost{err}
		}
		idle.Reset(streamIdleTimeout)
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
		m = streamEvent{}
		if !confirmed {
			confirmed = true
			ready()
		}
	}
}
