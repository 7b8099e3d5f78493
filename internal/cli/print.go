package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// records reads a list page by page, at most so many of it.
func (r *remote) records(ctx context.Context, path string, q url.Values, most int, each func(json.RawMessage) error) error {
	for most > 0 {
		q.Set("limit", strconv.Itoa(min(most, 200)))
		var page struct {
			Data []json.RawMessage
			Next *string `json:"next_cursor"`
		}
		if err := r.do(ctx, "GET", path+"?"+q.Encode(), nil, &page); err != nil {
			return err
		}
		for _, one := range page.Data {
			if err := each(one); err != nil {
				return err
			}
		}
		most -= len(page.Data)
		if page.Next == nil {
			return nil
		}
		q.Set("cursor", *page.Next)
	}
	return nil
}

// list prints a list as a table, or as a line of JSON for each record; row makes the cells of one.
func (r *remote) list(ctx context.Context, path string, q url.Values, most int, head string, row func(json.RawMessage) ([]string, error)) error {
	t := tabwriter.NewWriter(r.out, 2, 8, 2, ' ', 0)
	n := 0
	err := r.records(ctx, path, q, most, func(one json.RawMessage) error {
		if n++; r.json {
			return r.line(one)
		}
		if n == 1 {
			fmt.Fprintln(t, strings.ReplaceAll(head, " ", "\t"))
		}
		cells, err := row(one)
		if err != nil {
			return fmt.Errorf("the answer cannot be read: %w", err)
		}
		for i, c := range cells {
			cells[i] = tidy(c)
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
		return nil
	})
	if flush := t.Flush(); err == nil {
		err = flush
	}
	if err == nil && n == 0 && !r.json {
		fmt.Fprintln(r.note, "there are none")
	}
	return err
}

// line prints JSON on one line.
func (r *remote) line(v any) error {
	e := json.NewEncoder(r.out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// record prints one record: its members that have a value, one below the other.
func (r *remote) record(raw json.RawMessage) error {
	if r.json {
		return r.line(raw)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if _, err := d.Token(); err != nil {
		return fmt.Errorf("the answer cannot be read: %w", err)
	}
	t := tabwriter.NewWriter(r.out, 2, 8, 2, ' ', 0)
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return err
		}
		if text := string(v); text != "null" && text != "[]" && text != "{}" && text != `""` {
			fmt.Fprintf(t, "%s\t%s\n", name, shownValue(v))
		}
	}
	return t.Flush()
}

// shownValue is a text without its quotes; anything else as it is.
func shownValue(v json.RawMessage) string {
	var text string
	if json.Unmarshal(v, &text) == nil {
		return tidy(text)
	}
	return string(v)
}

// tidy keeps what others wrote from moving the cursor of a terminal; nothing is shown as -.
func tidy(text string) string {
	text = strings.Map(func(c rune) rune {
		if c < ' ' || c >= 0x7f && c < 0xa0 || c == 0x2028 || c == 0x2029 || c >= 0x202a && c <= 0x202e || c >= 0x2066 && c <= 0x2069 {
			return ' '
		}
		return c
	}, text)
	return cmp.Or(text, "-")
}

// clock is a moment as people of this machine read it.
func clock(text string) string {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return text
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// moment reads a time as commands take it: RFC 3339, a day, or how long ago, such as 2h.
func moment(flagName, text string) (string, error) {
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return time.Now().Add(-ago).UTC().Format(time.RFC3339), nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if _, err := time.Parse(layout, text); err == nil {
			return text, nil
		}
	}
	return "", &failure{exitUsage, fmt.Errorf("--%s %q must be how long ago, such as 2h, a time such as 2026-01-31T09:30:00Z, or a day", flagName, text)}
}

// spanOf puts --since and --until, where they are given, into a query or body.
func spanOf(since, until string, put func(name, value string)) error {
	for name, text := range map[string]string{"since": since, "until": until} {
		if text == "" {
			continue
		}
		at, err := moment(name, text)
		if err != nil {
			return err
		}
		put(name, at)
	}
	return nil
}
