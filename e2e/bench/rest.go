package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"soniq/internal/platform/db"
)

// measureStart measures the time from starting the program to its ready line, and its memory a while later.
func (b *bench) measureStart() error {
	b.title("Start", "from starting the program to the line that says it is ready; memory ten seconds later")
	var rows [][]string
	var slowest time.Duration
	var most int // MB
	dir, err := temporary("start")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, what := range []string{"first start, empty folder", "second start"} {
		p, err := startPlatform(b.binary, dir)
		if err != nil {
			return err
		}
		begun := cpu(p.process)
		<-time.After(10 * time.Second)
		slowest, most = max(slowest, p.ready), max(most, memory(p.process)>>10)
		rows = append(rows, []string{what, fmt.Sprintf("%d ms", p.ready.Milliseconds()), fmt.Sprintf("%d MB", memory(p.process)>>10),
			fmt.Sprintf("%.1f %%", 10*(cpu(p.process)-begun).Seconds()), load()})
		p.stop()
	}
	b.atMost("start to ready", float64(slowest.Milliseconds()), 1000, " ms")
	b.atMost("memory, idle", float64(most), 100, " MB")
	b.table([]string{"what", "ready after", "memory", "of a core, idle", "load"}, rows)
	return nil
}

// measureRecords lists call detail records out of very many.
func (b *bench) measureRecords() error {
	b.title("Lists and counts", fmt.Sprintf("GET /cdr?limit=50 and GET /analytics over HTTP on %d call detail records of one organisation, SQLite, one client", b.cdrs))
	dir, err := temporary("cdr")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	p, err := startPlatform(b.binary, dir)
	if err != nil {
		return err
	}
	defer func() { p.stop() }()
	if err := p.furnish(b.binary); err != nil {
		return err
	}
	p.stop()
	began := time.Now()
	if err := fillRecords(filepath.Join(p.data, "soniq.db"), p.org, b.cdrs); err != nil {
		return err
	}
	b.say("%d records written in %s", b.cdrs, time.Since(began).Round(time.Second))
	again, err := startPlatform(b.binary, dir)
	if err != nil {
		return err
	}
	again.org, again.key = p.org, p.key
	p = again
	counted, err := p.counted()
	if err != nil {
		return err
	}
	b.say("counted within %s of the start", counted.Round(time.Second))
	var rows [][]string
	for _, q := range slices.Concat(recordQueries, countQueries) {
		row, p99, err := p.list(q)
		if err != nil {
			return err
		}
		if q.most > 0 {
			b.atMost("list, p99: "+q.name, p99, q.most, " ms")
		}
		rows = append(rows, row)
	}
	b.table([]string{"filter", "requests", "p50 ms", "p99 ms", "worst ms", "load"}, rows)
	return nil
}

// counted waits until all records are in the counters, which answer far sooner than the records do. It returns the
// time since the start.
func (p *platform) counted() (time.Duration, error) {
	var first time.Duration
	begun := time.Now()
	for limit := begun.Add(5 * time.Minute); time.Now().Before(limit); <-time.After(time.Second) {
		began := time.Now()
		if err := p.api(http.MethodGet, "/analytics/calls?"+daysAgo(180, 180), nil, nil); err != nil {
			return 0, err
		}
		took := time.Since(began)
		if first = max(first, took); took < first/4 {
			return time.Since(begun), nil
		}
	}
	return 0, errors.New("the records were not counted within five minutes")
}

// recordQuery is a filter whose values change from request to request.
type recordQuery struct {
	name string
	most float64 // 99th percentile limit in ms; 0: no target
	text func() string
}

var recordQueries = []recordQuery{
	{"none", 10, func() string { return "" }},
	{"from_number", 10, func() string { return "&from_number=" + url.QueryEscape(someone(rand.IntN(50_000))) }},
	{"phone (either side)", 10, func() string { return "&phone=" + url.QueryEscape(someone(rand.IntN(50_000))) }},
	{"since and until, a day", 10, func() string {
		t := time.Now().AddDate(0, 0, -1-rand.IntN(180)).UTC()
		return "&since=" + t.Format(time.RFC3339) + "&until=" + t.AddDate(0, 0, 1).Format(time.RFC3339)
	}},
	{"agent_id", 10, func() string { return fmt.Sprintf("&agent_id=user_%d", rand.IntN(100)) }},
	{"direction and status (common)", 10, func() string { return "&direction=inbound&status=completed" }},
	{"sentiment, rare (1 in 10,000), a week", 50, func() string {
		t := time.Now().AddDate(0, 0, -8-rand.IntN(170)).UTC()
		return "&sentiment=mixed&since=" + t.Format(time.RFC3339) + "&until=" + t.AddDate(0, 0, 7).Format(time.RFC3339)
	}},
	{"sentiment, rare (1 in 10,000), any time", 0, func() string { return "&sentiment=mixed" }},
	{"q (text of the summary), found nowhere, any time", 0, func() string { return "&q=nowhere" }},
}

// countQueries are sent once the records are counted.
var countQueries = []recordQuery{
	{"calls by day, 30 days", 50, func() string { return "/analytics/calls" }},
	{"calls by hour, a day, by agent", 50, func() string {
		return "/analytics/calls?interval=hour&group_by=agent_id&" + daysAgo(1+rand.IntN(170), 1)
	}},
	{"calls by week, half a year", 50, func() string { return "/analytics/calls?interval=week&" + daysAgo(180, 180) }},
	{"agents, 30 days", 0, func() string { return "/analytics/agents" }},
}

// daysAgo returns a filter for whole days that began some days ago.
func daysAgo(begin, days int) string {
	t := time.Now().AddDate(0, 0, -begin).UTC()
	return "since=" + t.Format(time.DateOnly) + "&until=" + t.AddDate(0, 0, days).Format(time.DateOnly)
}

func (p *platform) list(q recordQuery) (row []string, p99 float64, err error) {
	var took []time.Duration
	for limit := time.Now().Add(10 * time.Second); len(took) < 1000 && time.Now().Before(limit); {
		path := q.text()
		if !strings.HasPrefix(path, "/") {
			path = "/cdr?limit=50" + path
		}
		began := time.Now()
		if err := p.api(http.MethodGet, path, nil, nil); err != nil {
			return nil, 0, err
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	ms := func(d time.Duration) string { return fmt.Sprintf("%.2f", milliseconds(d)) }
	return []string{q.name, fmt.Sprint(len(took)), ms(took[len(took)/2]), ms(took[(len(took)-1)*99/100]), ms(took[len(took)-1]), load()},
		milliseconds(took[(len(took)-1)*99/100]), nil
}

func someone(i int) string { return fmt.Sprintf("+1415%07d", i) }

// fillRecords writes ended calls, spread over half a year.
func fillRecords(path, org string, n int) error {
	ctx := context.Background()
	d, err := db.Open(ctx, path)
	if err != nil {
		return err
	}
	defer d.Close()
	for done := 0; done < n; done += 5000 {
		err := d.Tx(ctx, func(tx db.Querier) error {
			for i := done; i < min(done+5000, n); i++ {
				if err := fillRecord(ctx, tx, org, i, n); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func fillRecord(ctx context.Context, tx db.Querier, org string, i, n int) error {
	const q = `INSERT INTO calls (org_id, id, cdr_id, direction, status, stage, source, from_number, to_number, agent_id, agent_name,
			started_at, ringing_at, answered_at, ended_at, ring_seconds, queue_seconds, hold_seconds, talk_seconds, total_seconds,
			end_reason, hangup_by, missed_reason, recording_state, recording_ready, consent, ai_summary, sentiment, tags, notes_count,
			metadata, sandbox, node, announced_at)
		VALUES ($1, $2, $3, $4, $5, 'none', 'inbound', $6, $7, $8, 'Ada', $9, $9, $10, $11, 4, 0, 0, 60, 64, 'caller_hangup', 'caller',
			$12, 'off', FALSE, 'not_required', $13, $14, '[]', 0, '{}', FALSE, 'bench', $11)`
	at := time.Now().Add(-time.Duration(n-i) * 180 * 24 * time.Hour / time.Duration(n))
	direction, status, missed, sentiment := "inbound", "completed", db.Null(""), "neutral"
	if i%3 == 0 {
		direction = "outbound"
	} else if i%20 == 1 {
		status, missed = "missed", "no_answer"
	}
	if i%10_000 == 7 {
		sentiment = "mixed"
	}
	_, err := tx.Exec(ctx, q, org, db.NewID("call"), db.NewID("cdr"), direction, status, someone(rand.IntN(50_000)), did,
		fmt.Sprintf("user_%d", rand.IntN(100)), db.At(at), db.At(at.Add(4*time.Second)), db.At(at.Add(64*time.Second)), missed,
		"They asked about an invoice that came twice and were promised an answer.", sentiment)
	return err
}
