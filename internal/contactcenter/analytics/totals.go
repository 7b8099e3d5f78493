package analytics

import (
	"time"

	"soniq/internal/platform/db"
)

// CallTotals sums calls. Averages are whole seconds and rates whole percentages. Both are null if there is nothing to
// average.
type CallTotals struct {
	Total            int64  `json:"total"`
	Inbound          int64  `json:"inbound"`
	Outbound         int64  `json:"outbound"`
	Internal         int64  `json:"internal"`
	Answered         int64  `json:"answered"`
	Missed           int64  `json:"missed"`
	Abandoned        int64  `json:"abandoned" doc:"Missed while the caller waited in a queue or a menu"`
	Voicemail        int64  `json:"voicemail" doc:"Missed, with a message left"`
	AnswerRate       *int64 `json:"answer_rate" doc:"Answered of all, percent"`
	AverageRing      *int64 `json:"average_ring_seconds"`
	AverageWait      *int64 `json:"average_wait_seconds" doc:"In queues, of calls that went through one"`
	AverageTalk      *int64 `json:"average_talk_seconds" doc:"Of answered calls"`
	TotalTalk        int64  `json:"total_talk_seconds"`
	AverageHold      *int64 `json:"average_hold_seconds" doc:"Of answered calls"`
	UniqueCallers    int    `json:"unique_callers" doc:"Different numbers on the other side"`
	RepeatCallers    int    `json:"repeat_callers" doc:"Numbers with more than one call"`
	BusiestHour      *int   `json:"busiest_hour" minimum:"0" maximum:"23" doc:"Hour of the day in which most calls began; of the whole period only"`
	ServiceLevelRate *int64 `json:"service_level_rate" doc:"Of calls in queues, those answered within 20 seconds, percent"`
}

func (c *Counts) totals() CallTotals {
	return CallTotals{Total: c.Total, Inbound: c.Inbound, Outbound: c.Outbound, Internal: c.Internal, Answered: c.Answered,
		Missed: c.Missed, Abandoned: c.Abandoned, Voicemail: c.Voicemail, AnswerRate: percent(c.Answered, c.Total),
		AverageRing: average(c.Ring, c.Total), AverageWait: average(c.Queue, c.Queued), AverageTalk: average(c.Talk, c.Answered),
		TotalTalk: c.Talk, AverageHold: average(c.Hold, c.Answered), UniqueCallers: len(c.Callers),
		RepeatCallers: c.Callers.repeatCallers(), ServiceLevelRate: percent(c.WithinServiceLevel, c.Queued)}
}

// percent returns part of a whole in percent, rounded to the nearest integer.
func percent(part, of int64) *int64 { return average(100*part, of) }

func average(sum, of int64) *int64 {
	if of == 0 {
		return nil
	}
	v := (2*sum + of) / (2 * of)
	return &v
}

func busiestHour(hours [24]int64) *int {
	best := 0
	for h, n := range hours {
		if n > hours[best] {
			best = h
		}
	}
	if hours[best] == 0 {
		return nil
	}
	return &best
}

// Point is one step of a series.
type Point struct {
	At db.Time `json:"at" doc:"Where the step begins"`
	CallTotals
}

// Group sums the calls of a queue, an agent, a number or a direction.
type Group struct {
	By map[string]string `json:"by" doc:"What the calls have in common, as in {\"queue_id\": \"que_…\"}"`
	CallTotals
}

// Report sums the calls of a period.
type Report struct {
	Since    db.Time    `json:"since"`
	Until    db.Time    `json:"until"`
	Interval string     `json:"interval"`
	Timezone string     `json:"timezone"`
	Totals   CallTotals `json:"totals"`
	Series   []Point    `json:"series" nullable:"false"`
	Groups   []Group    `json:"groups,omitempty" doc:"With group_by, largest first"`
	AsOf     db.Time    `json:"as_of" doc:"Calls that ended before are counted"`
}

// dimensionFields maps dimensions to the names used in filters and groups.
var dimensionFields = map[string]string{ByQueue: "queue_id", ByAgent: "agent_id", ByNumber: "number_id", ByDirection: "direction"}

func (a *callSums) report(q callQuery, now time.Time) Report {
	since, until := q.times()
	r := Report{Since: since, Until: until, Interval: q.interval, Timezone: q.zone.String(), Totals: a.all.totals(),
		Series: make([]Point, len(q.steps)), AsOf: db.At(now)}
	r.Totals.BusiestHour = busiestHour(a.hours)
	for i, at := range q.steps {
		r.Series[i] = Point{At: db.At(at), CallTotals: a.steps[i].totals()}
	}
	for _, key := range a.sorted() {
		r.Groups = append(r.Groups, Group{By: q.by(key), CallTotals: a.groups[key].totals()})
	}
	return r
}
