package queue

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
	"soniq/internal/platform/db"
	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/digest"
	"soniq/internal/protocol/sip/resolve"
)

// Size of the day at the call centre. SONIQ_QUEUE_CALLS sets the number of calls.
const (
	dayCalls  = 30
	dayAgents = 24
	dayQueues = 6
)

// agentPhone is a telephone that acts like an agent: it refuses some calls, lets some ring, and ends those it answers.
type agentPhone struct {
	server *sip.Server
	body   []byte
	steady bool // answers every call

	mu     sync.Mutex // guards the fields below
	legs   []*sip.Leg // that ring or are answered now
	double int        // calls that came while there was one
	free   time.Time  // when the last call was over
	waited []time.Duration
}

// newAgentPhone registers a telephone.
func newAgentPhone(s *rig.Server, l rig.Login) *agentPhone {
	s.T.Helper()
	d := &agentPhone{body: []byte("v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 9 RTP/AVP 0\r\na=recvonly\r\n")}
	log := slog.New(slog.DiscardHandler)
	var err error
	if d.server, err = sip.Listen(s.T.Context(), sip.Config{Addr: "127.0.0.1:0", Accounts: sip.AnySource{}, Logger: log}, d); err != nil {
		s.T.Fatal(err)
	}
	s.T.Cleanup(func() { _ = d.server.Close() })
	_, err = d.server.Register(s.T.Context(), sip.RegistrationConfig{Registrar: resolve.Target{Host: s.SIP},
		AOR: "sip:" + l.Username + "@" + l.Domain, Credentials: digest.Credentials{Username: l.Username, Password: l.Password},
		Expires: time.Hour})
	if err != nil {
		s.T.Fatal(err)
	}
	return d
}

// Invite handles a call as an agent would.
func (d *agentPhone) Invite(_ context.Context, in *sip.Inbound) {
	d.mu.Lock()
	if slices.ContainsFunc(d.legs, alive) {
		d.double++
	}
	d.legs = append(d.legs, in.Leg())
	if !d.free.IsZero() {
		d.waited = append(d.waited, time.Since(d.free))
	}
	d.free = time.Time{}
	d.mu.Unlock()
	var once sync.Once
	over := func() { d.ended(in.Leg()) }
	in.Listen(func(e sip.Event) {
		switch e.(type) {
		case sip.Canceled, sip.Bye, sip.Closed, sip.Lost:
			once.Do(over)
		case sip.Acked:
			time.AfterFunc(time.Duration(50+rand.IntN(250))*time.Millisecond, func() {
				once.Do(over) // before the BYE: the next call may come as soon as it has left
				in.Leg().Bye(sip.Reason{Q850: 16})
			})
		}
	})
	in.Ring(180, nil)
	switch n := rand.IntN(100); {
	case d.steady:
		_ = in.Answer(d.body)
	case n < 15:
		time.AfterFunc(20*time.Millisecond, func() { once.Do(over); in.Reject(486, "", 0) })
	case n < 17: // lets it ring
	default:
		time.AfterFunc(time.Duration(20+rand.IntN(200))*time.Millisecond, func() {
			if in.Answer(d.body) != nil {
				once.Do(over)
			}
		})
	}
}

// alive reports whether a call is up. The telephone may have accepted the BYE before the test sees the end.
func alive(l *sip.Leg) bool {
	select {
	case <-l.Done():
		return false
	default:
		return true
	}
}

// ended records that a call is over.
func (d *agentPhone) ended(l *sip.Leg) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.legs = slices.DeleteFunc(d.legs, func(x *sip.Leg) bool { return x == l })
	d.free = time.Now()
}

// TestLoad_CallCentreDay runs agents of overlapping queues that answer, refuse or ignore calls, while callers arrive,
// wait and hang up. No agent is offered two callers at once, and no caller is lost. Soak runs kill the server in
// between.
func TestLoad_CallCentreDay(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 75*time.Second, "callers of a whole day, at five a second")
	flags := []string{"--sip", fmt.Sprintf("127.0.0.1:%d", rig.FreePort(t)), "--media-timeout", "0", "--call-rate", "1000"}
	rig.Each(t, rig.Options{Load: rig.Browser, Env: fixture.NoSpeech, Flags: flags, Upset: true}, func(t *testing.T, s *rig.Server) {
		o := newCallCentre(t, s)
		calls, kills := fixture.EnvInt("SONIQ_QUEUE_CALLS", dayCalls), 0
		if fixture.Soak() {
			calls, kills = fixture.EnvInt("SONIQ_QUEUE_CALLS", 2400), 3
		}
		began, limit := time.Now(), 5*time.Minute
		if kills > 0 { // a waiting caller is lost with the server, and gets no BYE
			limit = time.Duration(calls/dayQueues/5+40) * time.Second
		}
		var all []*rig.Sipp
		for _, way := range o.ways {
			n, few := calls/dayQueues, calls/dayQueues/10
			all = append(all, s.Sipp(rig.Script{Scenario: "call_until_bye", Calls: n - few, Rate: 5, IP: way.IP, From: "+12125550177", Number: way.Number,
				Quiet: true, Limit: limit}))
			if few > 0 {
				all = append(all, s.Sipp(rig.Script{Scenario: "call", Calls: few, Rate: 1, IP: way.IP, From: "+12125550178",
					Number: way.Number, Talk: 400 * time.Millisecond, Quiet: true, Limit: limit}))
			}
		}
		for i := range kills {
			rig.Until(t, "callers have come", 3*time.Minute, func() bool { return o.count(`SELECT COUNT(*) FROM queue_entries`) > (i+1)*calls/(kills+2) })
			s.Kill()
			s.Start()
		}
		for _, p := range all {
			if err := p.End(); err != nil && kills == 0 {
				t.Logf("callers: %v", err)
			}
		}
		rig.Until(t, "nobody waits any more", 2*time.Minute, o.idle)
		took := time.Since(began)
		o.check(calls, kills)
		o.logLatency(fmt.Sprintf("%d calls in %s, with and without callers waiting", calls, took.Round(time.Second)))
	})
}

// TestLoad_OfferLatency measures how long an agent whose call is over waits for the next one while callers wait. The time runs from the
// BYE that the telephone sends to the INVITE that it receives.
func TestLoad_OfferLatency(t *testing.T) {
	if os.Getenv("SONIQ_BENCH") == "" {
		t.Skip("SONIQ_BENCH=1 runs this, with nothing else on the machine")
	}
	rig.Each(t, rig.Options{Env: fixture.NoSpeech, Flags: []string{"--media-timeout", "0", "--call-rate",
		"1000"}}, func(t *testing.T, s *rig.Server) {
		o := &callCentre{Org: fixture.NewOrg(s)}
		id := o.AddQueue(map[string]any{"wrap_up_seconds": 0})
		way := addQueueCarrier(o.Org, id)
		for i := range 4 {
			u := o.AddUser(fmt.Sprintf("Agent%02d", i))
			o.Want(201, "POST", "/queues/"+id+"/members", map[string]any{"user_id": u.ID}, nil)
			d := newAgentPhone(s, u.SIP)
			d.steady = true
			o.desks = append(o.desks, d)
		}
		s.Sipp(rig.Script{Scenario: "call_until_bye", Calls: 300, Rate: 40, IP: way.IP, From: "+12125550177", Number: way.Number, Quiet: true,
			Limit: 5 * time.Minute}).Wait()
		o.logLatency("4 agents, 300 callers at 40 a second")
	})
}

// callCentre is an organisation with queues that overlap and many agents.
type callCentre struct {
	*fixture.Org
	desks  []*agentPhone
	queues []string
	ways   []fixture.Carrier
	db     *db.DB
}

// newCallCentre makes a call centre and registers the agents' telephones.
func newCallCentre(t *testing.T, s *rig.Server) *callCentre {
	o := &callCentre{Org: fixture.NewOrg(s)}
	strategies := []string{"longest_idle", "round_robin", "fewest_calls", "priority", "random", "ring_all"}
	for i := range dayQueues {
		id := o.AddQueue(map[string]any{"name": fmt.Sprintf("Queue %d", i), "strategy": strategies[i], "wrap_up_seconds": 0, "ring_timeout_seconds": 5,
			"retry_delay_seconds": 0, "missed_offers_limit": 0, "priority": i % 2})
		o.queues, o.ways = append(o.queues, id), append(o.ways, addQueueCarrier(o.Org, id))
	}
	for i := range dayAgents {
		u := o.AddUser(fmt.Sprintf("Agent%02d", i))
		for k := range 2 {
			o.Want(201, "POST", "/queues/"+o.queues[(i+k)%dayQueues]+"/members", map[string]any{"user_id": u.ID}, nil)
		}
		o.desks = append(o.desks, newAgentPhone(s, u.SIP))
	}
	return o
}

// idle reports whether no caller waits and no agent rings or talks.
func (o *callCentre) idle() bool {
	var all struct {
		Data []struct {
			Waiting int `json:"callers_waiting"`
			Agents  struct{ Busy, Ringing int }
		}
	}
	o.Want(200, "GET", "/queues/stats", nil, &all)
	return !slices.ContainsFunc(all.Data, func(q struct {
		Waiting int `json:"callers_waiting"`
		Agents  struct{ Busy, Ringing int }
	}) bool {
		return q.Waiting > 0 || q.Agents.Busy > 0 || q.Agents.Ringing > 0
	})
}

// check compares the records with the calls of the telephones.
func (o *callCentre) check(calls, kills int) {
	o.T.Helper()
	for i, d := range o.desks {
		if d.double > 0 && kills == 0 {
			o.T.Errorf("telephone %d was rung %d times while it was rung or spoken on", i, d.double)
		}
	}
	count := o.count
	overlapping := count(`SELECT COUNT(*) FROM queue_offers a JOIN queue_offers b ON b.org_id = a.org_id AND b.agent_id = a.agent_id
		AND b.id > a.id
		AND b.offered_at < a.ended_at AND a.offered_at < b.ended_at`)
	open := count(`SELECT COUNT(*) FROM queue_entries WHERE exited_at IS NULL`) + count(`SELECT COUNT(*) FROM queue_offers WHERE ended_at IS NULL`)
	entered, completed, left := count(`SELECT COUNT(*) FROM queue_entries`), count(`SELECT COUNT(*) FROM queue_entries WHERE status = 'completed'`),
		count(`SELECT COUNT(*) FROM queue_entries WHERE status = 'abandoned'`)
	twice := count(`SELECT COUNT(*) FROM (SELECT entry_id FROM queue_offers WHERE status = 'completed' GROUP BY entry_id HAVING COUNT(*) > 1) x`)
	o.T.Logf("%d callers entered, %d spoke, %d left; %d offers", entered, completed, left, count(`SELECT COUNT(*) FROM queue_offers`))
	if overlapping > 0 || open > 0 || twice > 0 || completed+left != entered || kills == 0 && entered != calls {
		o.T.Errorf("%d offers overlap, %d are open, %d callers were answered twice; of %d calls %d entered, %d spoke and %d left",
			overlapping, open, twice, calls, entered, completed, left)
	}
}

// count runs a count query on the database of the server.
func (o *callCentre) count(text string) (n int) {
	o.T.Helper()
	if o.db == nil {
		address := o.Server.DB
		if address == "" {
			address = filepath.Join(o.Server.Data, "soniq.db")
		}
		var err error
		if o.db, err = db.Open(context.Background(), address); err != nil {
			o.T.Fatal(err)
		}
		o.T.Cleanup(func() { _ = o.db.Close() })
	}
	ctx := context.Background()
	if err := o.db.Read(ctx).QueryRow(ctx, text).Scan(&n); err != nil {
		o.T.Fatal(err)
	}
	return n
}

// offerDelays returns how long free agents waited for the next caller, sorted.
func (o *callCentre) offerDelays() (all []time.Duration) {
	for _, d := range o.desks {
		d.mu.Lock()
		all = append(all, d.waited...)
		d.mu.Unlock()
	}
	slices.Sort(all)
	return all
}

// logLatency logs how soon free agents were offered the next caller.
func (o *callCentre) logLatency(what string) {
	all := o.offerDelays()
	if n := len(all); n > 0 {
		o.T.Logf("%s: free until offered p50 %s, p99 %s of %d", what, all[n/2].Round(100*time.Microsecond),
			all[n*99/100].Round(100*time.Microsecond), n)
	}
}
