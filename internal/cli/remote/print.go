package remote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"soniq/internal/cli/command"
)

// eachRecord calls each for the records of a list, and reads the list page by page. It ends after limit records; 0 means all.
func (c *client) eachRecord(ctx context.Context, path string, q url.Values, limit int, each func(json.RawMessage) error) error {
	most := limit
	if limit <= 0 {
		most = math.MaxInt
	}
	for most > 0 {
		q.Set("limit", strconv.Itoa(min(most, 200)))
		var page struct {
			Data []json.RawMessage
			Next *string `json:"next_cursor"`
		}
		if err := c.do(ctx, "GET", path+"?"+q.Encode(), nil, &page); err != nil {
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

// printList prints a list as a table, or as a line of JSON for each record. row returns the cells of a record. A limit of 0 means all.
func (c *client) printList(ctx context.Context, path string, q url.Values, limit int, head string, row func(json.RawMessage) ([]string,
	error)) error {
	t := tabwriter.NewWriter(c.out, 2, 8, 2, ' ', 0)
	n := 0
	err := c.eachRecord(ctx, path, q, limit, func(one json.RawMessage) error {
		if n++; c.json {
			return c.printJSON(one)
		}
		if n == 1 {
			fmt.Fprintln(t, strings.ReplaceAll(head, " ", "\t"))
		}
		cells, err := row(one)
		if err != nil {
			return fmt.Errorf("the answer cannot be read: %w", err)
		}
		for i, c := range cells {
			cells[i] = printable(c)
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
		return nil
	})
	if flush := t.Flush(); err == nil {
		err = flush
	}
	if err == nil && n == 0 && !c.json {
		fmt.Fprintln(c.note, "there are none")
	}
	return err
}

// printJSON prints a value as JSON on one line.
func (c *client) printJSON(v any) error {
	e := json.NewEncoder(c.out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// printRecord prints the members of a record that have a value, one on a line.
func (c *client) printRecord(raw json.RawMessage) error {
	if c.json {
		return c.printJSON(raw)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if _, err := d.Token(); err != nil {
		return fmt.Errorf("the answer cannot be read: %w", err)
	}
	t := tabwriter.NewWriter(c.out, 2, 8, 2, ' ', 0)
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
			fmt.Fprintf(t, "%s\t%s\n", name, valueText(v))
		}
	}
	return t.Flush()
}

// valueText returns a string without its quotes, and any other value as JSON.
func valueText(v json.RawMessage) string {
	var text string
	if json.Unmarshal(v, &text) == nil {
		return printable(text)
	}
	return string(v)
}

// printable returns a text of others without control and direction characters, which could move the cursor of the terminal. It returns -
// for an empty text.
func printable(text string) string {
	text = strings.Map(func(c rune) rune {
		if c < ' ' || c >= 0x7f && c < 0xa0 || c == 0x2028 || c == 0x2029 || c >= 0x202a && c <= 0x202e || c >= 0x2066 && c <= 0x2069 {
			return ' '
		}
		return c
	}, text)
	return cmp.Or(text, "-")
}

// localTime returns a time of the API in the time zone of this machine.
func localTime(text string) string {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return text
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// parseTime returns the time of a flag for the API. Flags take RFC 3339, a day, or a duration before now such as 2h.
func parseTime(flagName, text string) (string, error) {
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return time.Now().Add(-ago).UTC().Format(time.RFC3339), nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if _, err := time.Parse(layout, text); err == nil {
			return text, nil
		}
	}
	return "", command.Fail(command.ExitUsage, fmt.Errorf(
		"--%s %q must be how long ago, such as 2h, a time such as 2026-01-31T09:30:00Z, or a day", flagName, text))
}

// setTimeRange puts --since and --until into a query or body if they are given.
func setTimeRange(since, until string, put func(name, value string)) error {
	for name, text := range map[string]string{"since": since, "until": until} {
		if text == "" {
			continue
		}
		at, err := parseTime(name, text)
		if err != nil {
			return err
		}
		put(name, at)
	}
	return nil
}
