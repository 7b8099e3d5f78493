package partner

import (
	"container/heap"
	"context"
	"fmt"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/platform/clock/localday"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// Stats holds usage figures of a child organisation: sums only, no content.
type Stats struct {
	Period              Period     `json:"period"`
	Calls               Calls      `json:"calls"`
	SMS                 SMS        `json:"sms"`
	Users               Users      `json:"users"`
	Numbers             int        `json:"numbers" doc:"Now"`
	Recordings          Recordings `json:"recordings"`
	AI                  AI         `json:"ai"`
	PeakConcurrentCalls int        `json:"peak_concurrent_calls"`
	Series              []Bucket   `json:"series" nullable:"false" doc:"One for each interval, also where nothing happened"`
}

// Period is the period of the figures.
type Period struct {
	Since    db.Time `json:"since"`
	Until    db.Time `json:"until"`
	Interval string  `json:"interval" enum:"hour,day,week,month"`
	Timezone string  `json:"timezone" doc:"Whose days, weeks and months"`
}

// Calls counts the calls that began in a period.
type Calls struct {
	Total    int `json:"total"`
	Inbound  int `json:"inbound"`
	Outbound int `json:"outbound"`
	Answered int `json:"answered"`
	Missed   int `json:"missed"`
	Minutes  int `json:"minutes" doc:"Of talk, rounded"`
}

// SMS counts text messages.
type SMS struct {
	Sent     int `json:"sent"`
	Received int `json:"received"`
}

// Users counts the current users.
type Users struct {
	Total  int `json:"total"`
	Active int `json:"active" doc:"Neither invited nor suspended"`
}

// Recordings counts the recordings that began in a period.
type Recordings struct {
	Count   int `json:"count"`
	Minutes int `json:"minutes"`
}

// AI counts transcribed minutes and summaries.
type AI struct {
	TranscribedMinutes int `json:"transcribed_minutes"`
	Summaries          int `json:"summaries"`
}

// Bucket is one interval of a series.
type Bucket struct {
	Start db.Time `json:"start"`
	Calls
}

// StatsIn selects a child organisation and a period.
type StatsIn struct {
	OneIn
	op.Span
	Interval string `query:"interval" enum:"hour,day,week,month" default:"day"`
}

const (
	defaultSpan    = 30 * 24 * time.Hour
	maxSpan        = 366 * 24 * time.Hour
	maxHourlySpan  = 31 * 24 * time.Hour
	maxCallOverlap = 4 * time.Hour // calls that began up to this long before a period may still run in it
)

// period returns the requested period, by default the last thirty days.
func (in *StatsIn) period(now time.Time) (Period, error) {
	since, until, err := in.Times()
	if err != nil {
		return Period{}, err
	}
	if until.IsZero() {
		until = db.At(now)
	}
	if since.IsZero() {
		since = db.At(until.Add(-defaultSpan))
	}
	p := Period{Since: since, Until: until, Interval: in.Interval}
	if p.Interval == "" {
		p.Interval = "day"
	}
	most, words := maxSpan, "until must be after since, by 366 days at most"
	if p.Interval == "hour" {
		most, words = maxHourlySpan, "until must be after since, by 31 days at most where the interval is an hour"
	}
	if d := until.Sub(since.Time); d <= 0 || d > most {
		return p, &op.Error{Code: "invalid_query", Detail: words, Fields: []op.Violation{op.Field("until", "out_of_range", words)}}
	}
	return p, nil
}

// Stats returns the usage figures of a child organisation.
func (s *Service) Stats(ctx context.Context, in *StatsIn) (*op.Out[Stats], error) {
	q := s.cfg.DB.Read(ctx)
	o, err := s.child(ctx, q, in.ID)
	if err != nil {
		return nil, err
	}
	p, err := in.period(s.cfg.Clock.Now())
	if err != nil {
		return nil, err
	}
	out, err := s.figures(ctx, q, o, p)
	if err != nil {
		return nil, fmt.Errorf("count for %s: %w", o.ID, err)
	}
	return op.OK(out)
}

func (s *Service) figures(ctx context.Context, q db.Querier, o org.Organization, p Period) (Stats, error) {
	zone, err := time.LoadLocation(o.Timezone)
	if err != nil {
		zone = time.UTC
	}
	p.Timezone = o.Timezone
	t := newTally(p, zone)
	if err := callsIn(ctx, q, o.ID, db.At(p.Since.Add(-maxCallOverlap)), p.Until, t.add); err != nil {
		return Stats{}, err
	}
	out := t.stats()
	if err := countRest(ctx, q, o.ID, p, &out); err != nil {
		return out, err
	}
	out.SMS.Sent, out.SMS.Received, err = s.cfg.Messages.Count(ctx, o.ID, p.Since, p.Until)
	return out, err
}

// countedCall holds the columns of a call that are counted.
type countedCall struct {
	direction        string
	began, ended     db.Time // ended is zero while it runs
	answered, missed bool
	seconds          int
}

// tally counts calls in the order of their start.
type tally struct {
	period      Period
	zone        *time.Location
	buckets     []Bucket
	seconds     []int // of talk, by bucket
	bucketIndex int   // index of the bucket of the last call
	talk        int
	all         Calls
	running     endTimes // end times of calls that run when the next call begins
	peak        int
}

func newTally(p Period, zone *time.Location) *tally {
	t := &tally{period: p, zone: zone}
	at := localday.StepStart(p.Since.Time, p.Interval, zone)
	for ; at.Before(p.Until.Time); at = localday.NextStep(at, p.Interval, zone) {
		t.buckets = append(t.buckets, Bucket{Start: db.At(at)})
	}
	t.seconds = make([]int, len(t.buckets))
	return t
}

func (t *tally) add(c countedCall) {
	t.countConcurrent(c)
	if c.began.Before(t.period.Since.Time) {
		return
	}
	t.all.count(c)
	t.talk += c.seconds
	for t.bucketIndex+1 < len(t.buckets) && !c.began.Before(t.buckets[t.bucketIndex+1].Start.Time) {
		t.bucketIndex++
	}
	t.buckets[t.bucketIndex].count(c)
	t.seconds[t.bucketIndex] += c.seconds
}

// stats returns the result.
func (t *tally) stats() Stats {
	t.all.Minutes = minutes(t.talk)
	for i := range t.buckets {
		t.buckets[i].Minutes = minutes(t.seconds[i])
	}
	return Stats{Period: t.period, Calls: t.all, PeakConcurrentCalls: t.peak, Series: t.buckets}
}

func (c *Calls) count(x countedCall) {
	c.Total++
	switch x.direction {
	case "inbound":
		c.Inbound++
	case "outbound":
		c.Outbound++
	}
	if x.answered {
		c.Answered++
	}
	if x.missed {
		c.Missed++
	}
}

// countConcurrent keeps the end times of running calls in a heap and updates the peak.
func (t *tally) countConcurrent(c countedCall) {
	for len(t.running) > 0 && !t.running[0].After(c.began.Time) {
		heap.Pop(&t.running)
	}
	end := c.ended.Time
	if c.ended.IsZero() {
		end = t.period.Until.Time
	}
	heap.Push(&t.running, end)
	if !c.began.Before(t.period.Since.Time) {
		t.peak = max(t.peak, len(t.running))
	}
}

// endTimes is a min-heap of times (container/heap).
type endTimes []time.Time

// The methods of endTimes implement heap.Interface.
func (e endTimes) Len() int           { return len(e) }
func (e endTimes) Less(i, j int) bool { return e[i].Before(e[j]) }
func (e endTimes) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *endTimes) Push(x any)        { *e = append(*e, x.(time.Time)) }
func (e *endTimes) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func minutes(seconds int) int { return (seconds + 30) / 60 }
