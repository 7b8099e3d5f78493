package analytics

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/danielgtaylor/huma/v2"

	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// poorMOS is the MOS estimate below which most people are dissatisfied (ITU-T G.107 annex B: R 70).
const poorMOS = 3.6

// QualityIn selects the legs of a quality report.
type QualityIn struct {
	PeriodIn
	FilterIn
	GroupBy []string `query:"group_by" maxItems:"4" enum:"trunk_id,device_id,codec,queue_id,agent_id,number_id,direction" doc:"Tell them apart, too"`
}

// QualityTotals sums the quality of legs, each in both directions. Averages are null if nothing was measured.
type QualityTotals struct {
	Legs          int64    `json:"legs" doc:"Legs of which anything was measured"`
	MOS           *float64 `json:"mos_average" doc:"Of all directions of all legs"`
	MOSMin        *float64 `json:"mos_min" doc:"The worst moment of any"`
	Poor          int64    `json:"poor_legs" doc:"Legs with a direction below 3.6 on average"`
	PoorRate      *float64 `json:"poor_rate" doc:"Of legs, percent"`
	Packets       int64    `json:"packets"`
	Lost          int64    `json:"lost"`
	LossRate      *float64 `json:"loss_rate" doc:"Percent"`
	Jitter        *float64 `json:"jitter_ms_average"`
	JitterMax     *float64 `json:"jitter_ms_max"`
	RTT           *float64 `json:"rtt_ms_average" doc:"Of legs that told"`
	PostDialDelay *float64 `json:"post_dial_delay_ms_average" doc:"From the request to the ringing, of legs that rang"`
	DelayMax      *float64 `json:"post_dial_delay_ms_max"`
	OneWay        int64    `json:"one_way_audio_legs"`
}

// QualityPoint is one step of the series.
type QualityPoint struct {
	At db.Time `json:"at" doc:"Where the step begins"`
	QualityTotals
}

// QualityGroup sums the quality of the legs of a trunk, a device or another group.
type QualityGroup struct {
	By map[string]string `json:"by"`
	QualityTotals
}

// QualityReport sums the quality of calls in a period.
type QualityReport struct {
	Since    db.Time        `json:"since"`
	Until    db.Time        `json:"until"`
	Interval string         `json:"interval"`
	Timezone string         `json:"timezone"`
	Totals   QualityTotals  `json:"totals"`
	Series   []QualityPoint `json:"series" nullable:"false"`
	Groups   []QualityGroup `json:"groups,omitempty" doc:"With group_by, most legs first"`
	AsOf     db.Time        `json:"as_of"`
}

// mediaStats holds the measurements of one direction of a leg.
type mediaStats struct {
	MOSMin      float64 `json:"mos_min"`
	MOS         float64 `json:"mos_average"`
	Packets     int64   `json:"packets"`
	Lost        int64   `json:"lost"`
	JitterMS    float64 `json:"jitter_ms_average"`
	JitterMSMax float64 `json:"jitter_ms_max"`
	RTTMS       float64 `json:"rtt_ms"`
	Codec       string  `json:"codec"`
	DelayMS     int     `json:"post_dial_delay_ms"`
	OneWay      bool    `json:"one_way_audio"`
}

// measuredLeg is a leg with its measurements.
type measuredLeg struct {
	record
	trunk, device  string
	received, sent *mediaStats
}

func (l measuredLeg) directions() (all []*mediaStats) {
	for _, s := range []*mediaStats{l.received, l.sent} {
		if s != nil && s.Packets > 0 {
			all = append(all, s)
		}
	}
	return all
}

func (l measuredLeg) groupField(name string) string {
	switch name {
	case "codec":
		return l.directions()[0].Codec
	case "trunk_id":
		return l.trunk
	case "device_id":
		return l.device
	}
	return l.columnValue(name)
}

// qualitySums sums measurements.
type qualitySums struct {
	legs, poor, oneWay, packets, lost                 int64
	directions, mos, jitter, rtt, rtts, delay, delays float64
	mosMin, jitterMax, delayMax                       float64
}

func (t *qualitySums) add(l measuredLeg) {
	poor, oneWay, delay := false, false, 0
	for _, s := range l.directions() {
		if t.directions == 0 || s.MOSMin < t.mosMin {
			t.mosMin = s.MOSMin
		}
		t.directions, t.mos, t.jitter, t.packets, t.lost = t.directions+1, t.mos+s.MOS, t.jitter+s.JitterMS, t.packets+s.Packets,
			t.lost+s.Lost
		t.jitterMax = max(t.jitterMax, s.JitterMSMax)
		if s.RTTMS > 0 {
			t.rtt, t.rtts = t.rtt+s.RTTMS, t.rtts+1
		}
		poor, oneWay, delay = poor || s.MOS < poorMOS, oneWay || s.OneWay, max(delay, s.DelayMS)
	}
	t.legs++
	if poor {
		t.poor++
	}
	if oneWay {
		t.oneWay++
	}
	if delay > 0 {
		t.delay, t.delays, t.delayMax = t.delay+float64(delay), t.delays+1, max(t.delayMax, float64(delay))
	}
}

func (t *qualitySums) totals() QualityTotals {
	q := QualityTotals{Legs: t.legs, MOS: mean(t.mos, t.directions), Poor: t.poor, PoorRate: ratio(float64(t.poor), float64(t.legs)),
		Packets: t.packets, Lost: t.lost, LossRate: ratio(float64(t.lost), float64(t.packets+t.lost)), Jitter: mean(t.jitter, t.directions),
		RTT: mean(t.rtt, t.rtts), PostDialDelay: mean(t.delay, t.delays), OneWay: t.oneWay}
	if t.directions > 0 {
		q.MOSMin, q.JitterMax = mean(t.mosMin, 1), mean(t.jitterMax, 1)
	}
	if t.delays > 0 {
		q.DelayMax = mean(t.delayMax, 1)
	}
	return q
}

func (s *Service) quality(ctx context.Context, in *QualityIn) (*huma.StreamResponse, error) {
	q, err := s.newQuery(ctx, in.PeriodIn, in.FilterIn)
	if err != nil {
		return nil, err
	}
	names := unique(in.GroupBy)
	sums := newAggregation[qualitySums](q, names)
	err = s.eachMeasuredLeg(ctx, q, func(l measuredLeg) {
		for _, t := range sums.at(q, l.at.Time, l.groupField) {
			t.add(l)
		}
	})
	if err != nil {
		return nil, err
	}
	r := QualityReport{Interval: q.interval, Timezone: q.zone.String(), Totals: sums.all.totals(),
		Series: make([]QualityPoint, len(q.steps)), AsOf: db.At(s.cfg.Clock.Now())}
	r.Since, r.Until = q.times()
	for i, at := range q.steps {
		r.Series[i] = QualityPoint{db.At(at), sums.steps[i].totals()}
	}
	for _, key := range sums.sorted(func(t *qualitySums) int64 { return t.legs }) {
		r.Groups = append(r.Groups, QualityGroup{sums.by(key), sums.groups[key].totals()})
	}
	if in.csv() {
		return csvResponse(r.rows(names)), nil
	}
	return op.JSONStream(r), nil
}

func (r QualityReport) rows(names []string) [][]string {
	var lines []csvRow
	for _, p := range r.Series {
		lines = append(lines, csvRow{at: p.At, figures: p.QualityTotals})
	}
	if len(names) > 0 {
		lines = nil
	}
	for _, g := range r.Groups {
		lines = append(lines, csvRow{by: g.By, figures: g.QualityTotals})
	}
	return csvRows(names, lines, QualityTotals{})
}

// eachMeasuredLeg calls do for each leg with measurements.
func (s *Service) eachMeasuredLeg(ctx context.Context, q callQuery, do func(measuredLeg)) error {
	const text = `SELECT calls.started_at, calls.direction, calls.queue_id, calls.agent_id, calls.number_id, l.trunk_id, l.device_id,
		l.quality
		FROM calls JOIN legs l ON l.org_id = calls.org_id AND l.call_id = calls.id WHERE calls.org_id = $1 AND l.quality IS NOT NULL`
	return s.eachRow(ctx, q.filterCalls(db.Where(text, q.org)), "", func(rows *sql.Rows) error {
		var l measuredLeg
		var queue, agent, number, trunk, device db.Null
		var kept []byte
		if err := rows.Scan(&l.at, &l.direction, &queue, &agent, &number, &trunk, &device, &kept); err != nil {
			return err
		}
		var both struct{ Received, Sent *mediaStats }
		if json.Unmarshal(kept, &both) != nil {
			return nil // format of an older version
		}
		l.queue, l.agent, l.number, l.trunk, l.device = string(queue), string(agent), string(number), string(trunk), string(device)
		if l.received, l.sent = both.Received, both.Sent; len(l.directions()) > 0 {
			do(l)
		}
		return nil
	})
}
