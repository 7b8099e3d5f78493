package analytics_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"soniq/internal/contactcenter/analytics"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op/optest"
)

// pastCall is a call that has ended.
type pastCall struct {
	at                           time.Time
	direction, queue, agent, num string
	other                        string
	answered                     bool
	missed                       string
	wait, talk                   int
}

// fixture holds an organisation whose calls are counted.
type fixture struct {
	t       *testing.T
	db      *db.DB
	service *analytics.Service
	api     *optest.Server
	n       int
}

var now = time.Date(2026, 11, 21, 12, 7, 31, 0, time.UTC)

func newFixture(t *testing.T, d *db.DB) *fixture {
	t.Helper()
	const org = `INSERT INTO orgs (id, path, environment, name, plan, status, country, timezone, language, settings, created_at, updated_at)
		VALUES ('org_a', 'org_a', 'production', 'A', 'free', 'active', 'US', 'UTC', 'en', '{}', 0, 0)`
	o := &fixture{t: t, db: d}
	o.exec(org)
	o.restart()
	return o
}

// restart replaces the service, as a restart of the server does.
func (o *fixture) restart() {
	o.service = analytics.New(analytics.Config{DB: o.db, Clock: clock.Func(func() time.Time { return now }), Key: []byte("key"),
		Log: slog.New(slog.DiscardHandler), Zones: fakeOrganisations{}, Names: fakeOrganisations{}})
	o.service.CatchUp(o.t.Context(), []string{"org_a"})
	o.api = optest.New(o.t, o.db, o.service.Operations()...)
}

// fakeOrganisations are in UTC, and their agents have no names.
type fakeOrganisations struct{}

func (fakeOrganisations) Zone(context.Context, string) (*time.Location, error) { return time.UTC, nil }

func (fakeOrganisations) GroupName(context.Context, string, string, string) (string, error) {
	return "", nil
}

func (o *fixture) exec(q string, args ...any) {
	o.t.Helper()
	err := o.db.Tx(o.t.Context(), func(tx db.Querier) error { _, err := tx.Exec(o.t.Context(), q, args...); return err })
	if err != nil {
		o.t.Fatal(err)
	}
}

func (o *fixture) add(c pastCall) {
	o.t.Helper()
	const q = `INSERT INTO calls (org_id, id, direction, status, stage, source, from_number, to_number, number_id, queue_id, agent_id,
			started_at, answered_at, ended_at, ring_seconds, queue_seconds, hold_seconds, talk_seconds, total_seconds, missed_reason,
			recording_state, recording_ready, consent, tags, notes_count, metadata, sandbox, node)
		VALUES ('org_a', $1, $2, 'completed', 'none', 'inbound', $3, $4, $5, $6, $7, $8, $9, $10, 5, $11, 0, $12, 0, $13,
			'off', FALSE, 'not_required', '[]', 0, '{}', FALSE, 'n')`
	o.n++
	from, to := c.other, "100"
	if c.direction == "outbound" {
		from, to = to, from
	}
	var answered db.Time
	if c.answered {
		answered = db.At(c.at.Add(5 * time.Second))
	}
	o.exec(q, fmt.Sprintf("call_%06d", o.n), c.direction, from, to, db.Null(c.num), db.Null(c.queue), db.Null(c.agent), db.At(c.at),
		answered, db.At(c.at.Add(time.Minute)), c.wait, c.talk, db.Null(c.missed))
	if c.agent != "" {
		o.addShare(c.agent, c.talk)
	}
}

// addShare adds the leg of a person who served the last call for some seconds.
func (o *fixture) addShare(agent string, talk int) {
	o.t.Helper()
	o.exec(`INSERT INTO legs (org_id, id, call_id, role, user_id, number, status, sip_call_id, started_at, talk_seconds, hold_seconds)
		VALUES ('org_a', $1, $2, 'agent', $3, '100', 'ended', 'x', 0, $4, 0)`, db.NewID("leg"), fmt.Sprintf("call_%06d", o.n), agent, talk)
}

// A call that was transferred counts for both people, each with their own seconds. In total it counts once.
//
// https://github.com/asterisk/asterisk/issues/607
func TestAgents_TransferredCallCountsForEach(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newFixture(t, d)
		o.add(pastCall{at: now.Add(-time.Hour), direction: "inbound", agent: "usr_2", answered: true, other: "+12025550001", talk: 20})
		o.exec(`UPDATE calls SET talk_seconds = 30 WHERE org_id = 'org_a'`)
		o.addShare("usr_1", 10)
		o.restart()                                               // counts the call
		for _, from := range []string{"", "&direction=inbound"} { // from counts and from records
			a := o.get("/analytics/agents?since=2026-11-01" + from)
			first, second := a.At("data.0.talk_seconds"), a.At("data.1.talk_seconds")
			if a.At("data.0.handled") != 1.0 || a.At("data.1.handled") != 1.0 || first != 10.0 || second != 20.0 {
				t.Errorf("%q: %s", from, a.Bytes)
			}
			a = o.get("/analytics/calls?since=2026-11-01&group_by=agent_id" + from)
			if a.At("totals.total") != 1.0 || a.At("totals.total_talk_seconds") != 30.0 || a.At("groups.1") == nil {
				t.Errorf("%q: %s", from, a.Bytes)
			}
			a = o.get("/analytics/calls?since=2026-11-01&agent_id=usr_1" + from)
			if a.At("totals.total") != 1.0 || a.At("totals.total_talk_seconds") != 10.0 {
				t.Errorf("%q: usr_1 has %s", from, a.Bytes)
			}
		}
	})
}

func pick(r *rand.Rand, of ...string) string { return of[r.IntN(len(of))] }

// randomCalls returns calls at random times of a month.
func randomCalls(n int) []pastCall {
	r := rand.New(rand.NewPCG(1, 2))
	all := make([]pastCall, n)
	for i := range all {
		c := pastCall{at: now.Add(-time.Duration(r.Int64N(int64(31 * 24 * time.Hour)))),
			direction: pick(r, "inbound", "outbound", "internal"), queue: pick(r, "", "que_1", "que_2"),
			agent: pick(r, "", "usr_1", "usr_2", "usr_3"), num: pick(r, "num_1", "num_2"),
			other: fmt.Sprintf("+1202555%04d", r.IntN(50)), wait: r.IntN(60), talk: r.IntN(600)}
		if c.answered = r.IntN(3) > 0; !c.answered {
			c.missed, c.talk = pick(r, "no_answer", "abandoned_in_queue", "voicemail"), 0
		}
		all[i] = c
	}
	return all
}

// sum counts calls in the simplest way, for comparison.
func sum(all []pastCall, since, until time.Time, only func(pastCall) bool) (total, answered, talk, unique int) {
	numbers := map[string]bool{}
	for _, c := range all {
		if c.at.Before(since) || !c.at.Before(until) || only != nil && !only(c) {
			continue
		}
		total++
		numbers[c.other] = true
		if c.answered {
			answered, talk = answered+1, talk+c.talk
		}
	}
	return total, answered, talk, len(numbers)
}

// ordered returns the calls that match only, oldest first.
func ordered(all []pastCall, only func(pastCall) bool) []pastCall {
	kept := slices.Clone(all)
	if only != nil {
		kept = slices.DeleteFunc(kept, func(c pastCall) bool { return !only(c) })
	}
	slices.SortFunc(kept, func(a, b pastCall) int { return a.at.Compare(b.at) })
	return kept
}

// between returns the calls of a period from ordered calls.
func between(ordered []pastCall, since, until time.Time) []pastCall {
	first := func(at time.Time) int {
		return sort.Search(len(ordered), func(i int) bool { return !ordered[i].at.Before(at) })
	}
	return ordered[first(since):max(first(since), first(until))]
}

func (o *fixture) report(query url.Values) map[string]any {
	o.t.Helper()
	a := o.api.Do(optest.Admin("org_a"), "GET", "/analytics/calls?"+query.Encode(), nil)
	if a.Status != 200 {
		o.t.Fatalf("%s: %d %s", query.Encode(), a.Status, a.Bytes)
	}
	return a.Body
}

func figures(of any) string {
	m := of.(map[string]any)
	return fmt.Sprintf("%.0f %.0f %.0f %.0f", m["total"], m["answered"], m["total_talk_seconds"], m["unique_callers"])
}

func TestReport_MatchesCallRecords(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newFixture(t, d)
		all := randomCalls(1500)
		for _, c := range all {
			o.add(c)
		}
		o.restart()
		for _, zone := range []string{"UTC", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe"} {
			for _, interval := range []string{"hour", "day", "week", "month"} {
				for name, only := range map[string]func(pastCall) bool{
					"":                              nil,
					"queue_id=que_1":                func(c pastCall) bool { return c.queue == "que_1" },
					"agent_id=usr_2":                func(c pastCall) bool { return c.agent == "usr_2" },
					"direction=outbound":            func(c pastCall) bool { return c.direction == "outbound" },
					"queue_id=que_2&agent_id=usr_1": func(c pastCall) bool { return c.queue == "que_2" && c.agent == "usr_1" },
				} {
					query, _ := url.ParseQuery(name)
					query.Set("timezone", zone)
					query.Set("interval", interval)
					query.Set("since", "2026-10-26")
					query.Set("until", "2026-11-20")
					o.wantReport(all, query, only)
				}
			}
		}
	})
}

// wantReport compares a report, in total and by step, with the calls.
func (o *fixture) wantReport(all []pastCall, query url.Values, only func(pastCall) bool) {
	o.t.Helper()
	zone, _ := time.LoadLocation(query.Get("timezone"))
	since, until := time.Date(2026, 10, 26, 0, 0, 0, 0, zone), time.Date(2026, 11, 20, 0, 0, 0, 0, zone)
	r := o.report(query)
	total, answered, talk, unique := sum(all, since, until, only)
	if got, want := figures(r["totals"]), fmt.Sprint(total, answered, talk, unique); got != want {
		o.t.Errorf("%s: got %s, want %s", query.Encode(), got, want)
	}
	kept := ordered(all, only)
	series := r["series"].([]any)
	for i, p := range series {
		from, _ := time.Parse(time.RFC3339, p.(map[string]any)["at"].(string))
		if local := from.In(zone); !begins(local, query.Get("interval")) {
			o.t.Errorf("%s: a step begins at %s", query.Encode(), local)
		}
		to := until
		if i+1 < len(series) {
			to, _ = time.Parse(time.RFC3339, series[i+1].(map[string]any)["at"].(string))
		}
		if from.Before(since) {
			from = since
		}
		total, answered, talk, unique := sum(between(kept, from, to), from, to, nil)
		if got, want := figures(p), fmt.Sprint(total, answered, talk, unique); got != want {
			o.t.Errorf("%s from %s: got %s, want %s", query.Encode(), from, got, want)
		}
	}
}

// begins reports whether a step may begin at a local time.
func begins(local time.Time, interval string) bool {
	day := local.Hour() == 0
	return local.Minute() == 0 && map[string]bool{"hour": true, "day": day, "week": day && local.Weekday() == time.Monday,
		"month": day && local.Day() == 1}[interval]
}

func TestCallEnded_CountedOnceAcrossRestart(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newFixture(t, d)
		for _, c := range randomCalls(50) {
			o.add(c)
		}
		o.restart()
		before := o.report(nil)["totals"].(map[string]any)["total"].(float64)
		late := pastCall{at: now.Add(-3 * time.Hour), direction: "inbound", agent: "usr_1", num: "num_1", other: "+493012345",
			answered: true, talk: 60}
		o.add(late)
		o.service.CallEnded("org_a", late.at)
		for range 2 { // repeating the count changes nothing
			if after := o.report(nil)["totals"].(map[string]any)["total"].(float64); after != before+1 {
				t.Errorf("%.0f calls after one more than %.0f", after, before)
			}
			o.service.CallEnded("org_a", late.at)
		}
		lost := late // a call that ended just before a crash
		lost.at = now.Add(-2 * time.Minute)
		o.add(lost)
		o.restart()
		if after := o.report(nil)["totals"].(map[string]any)["total"].(float64); after != before+2 {
			t.Errorf("%.0f calls after a crash, want %.0f", after, before+2)
		}
	})
}

func TestReport_GroupsAndCSV(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	o := newFixture(t, d)
	all := randomCalls(400)
	for _, c := range all {
		o.add(c)
	}
	o.restart()
	r := o.report(url.Values{"group_by": {"agent_id"}})
	groups := r["groups"].([]any)
	if len(groups) != 3 {
		t.Fatalf("groups: %v", groups)
	}
	for _, g := range groups {
		id := g.(map[string]any)["by"].(map[string]any)["agent_id"]
		total, answered, talk, unique := sum(all, now.AddDate(0, 0, -30).Truncate(24*time.Hour), now, func(c pastCall) bool {
			return c.agent == id
		})
		if got, want := figures(g), fmt.Sprint(total, answered, talk, unique); got != want {
			t.Errorf("%s: got %s, want %s", id, got, want)
		}
	}
	a := o.api.Do(optest.Admin("org_a"), "GET", "/analytics/agents", nil, "Accept: text/csv")
	if lines := strings.Split(strings.TrimSpace(string(a.Bytes)), "\r\n"); len(lines) != 4 || !strings.HasPrefix(lines[0], "agent_id,name,handled") {
		t.Errorf("table of agents: %q", a.Bytes)
	}
	a = o.api.Do(optest.Admin("org_b"), "GET", "/analytics/calls", nil)
	if got := figures(a.Body["totals"]); got != "0 0 0 0" {
		t.Errorf("another organisation sees %s", got)
	}
}

// Clocks go forward at midnight in Chile and Cuba: the day begins at one.
//
// https://github.com/Restcomm/Restcomm-Connect/issues/1703
// https://github.com/keen/keen-js/issues/261
func TestPeriod_ClocksForwardAtMidnight(t *testing.T) {
	t.Parallel()
	o := newFixture(t, dbtest.SQLite(t))
	for query, starts := range map[string]string{
		"since=2026-09-05&until=2026-09-08&timezone=America/Santiago": "2026-09-05T04:00:00.000Z 2026-09-06T04:00:00.000Z 2026-09-07T03:00:00.000Z",
		"since=2026-03-07&until=2026-03-10&timezone=America/Havana":   "2026-03-07T05:00:00.000Z 2026-03-08T05:00:00.000Z 2026-03-09T04:00:00.000Z",
	} {
		r := o.api.Do(optest.Admin("org_a"), "GET", "/analytics/calls?interval=day&"+query, nil)
		if r.Status != 200 {
			t.Errorf("%s: %d %s", query, r.Status, r.Bytes)
			continue
		}
		var got []string
		for _, p := range r.Body["series"].([]any) {
			got = append(got, p.(map[string]any)["at"].(string))
		}
		if strings.Join(got, " ") != starts {
			t.Errorf("%s: days begin at %s, want %s", query, got, starts)
		}
	}
}

func TestPeriod_InvalidRefused(t *testing.T) {
	t.Parallel()
	o := newFixture(t, dbtest.SQLite(t))
	for _, query := range []string{"since=0000-12-02&until=0001-01-01", "since=yesterday", "since=2026-11-21&until=2026-11-20", "since=2024-01-01", "timezone=Mars/Olympus",
		"since=2025-12-01&interval=hour"} {
		if a := o.api.Do(optest.Admin("org_a"), "GET", "/analytics/calls?"+query, nil); a.Status != 400 || a.Body["code"] != "invalid_query" {
			t.Errorf("%s: %d %s", query, a.Status, a.Bytes)
		}
	}
}
