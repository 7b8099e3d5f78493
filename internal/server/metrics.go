package server

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"soniq/internal/config"
	"soniq/internal/contactcenter/flow"
	"soniq/internal/platform/limit"
	"soniq/internal/server/readiness"
)

// metrics exports counters to Prometheus. Counters that services keep are read at each scrape.
type metrics struct {
	registry   *prometheus.Registry
	operations *prometheus.HistogramVec
}

func newMetrics(n *Server) *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	m.operations = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "soniq_operation_seconds",
		Help: "Time of API operations by operation and outcome.", Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .3, 1, 5}},
		[]string{"operation", "code"})
	m.registry.MustRegister(m.operations, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.calls(n)
	m.signalling(n)
	m.storage(n)
	m.limits()
	m.connections(n)
	return m
}

func (m *metrics) operation(name, code string, took time.Duration) {
	m.operations.WithLabelValues(name, code).Observe(took.Seconds())
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

func (m *metrics) gauge(name, help string, read func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read))
}

func (m *metrics) counter(name, help string, read func() float64) {
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, read))
}

func (m *metrics) calls(n *Server) {
	s := n.switcher
	m.gauge("soniq_calls_active", "Calls in progress.", func() float64 { return float64(s.Active()) })
	m.counter("soniq_calls_total", "Calls that came in since start.", func() float64 { return float64(s.Stats().Started) })
	m.counter("soniq_calls_answered_total", "Calls that were answered.", func() float64 { return float64(s.Stats().Answered) })
	m.counter("soniq_calls_unanswered_total", "Calls that ended without an answer.", func() float64 { return float64(s.Stats().Failed) })
	m.counter("soniq_calls_refused_total", "Calls that were not placed: no route, gate, media.",
		func() float64 { return float64(s.Stats().Refused) })
	m.counter("soniq_calls_turned_away_total", "Calls refused with 503 because they came faster than they could be set up.",
		func() float64 { return float64(s.Stats().TurnedAway) })
	for reason := range n.Platform.gate.RefusalCounts() {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "soniq_outbound_refused_total",
			Help: "Outbound calls the gate refused, by reason.", ConstLabels: prometheus.Labels{"reason": string(reason)}},
			func() float64 { return float64(n.Platform.gate.RefusalCounts()[reason]) }))
	}
	m.gauge("soniq_emergency_standby_phones", "Phones whose emergency calls leave without the database.",
		func() float64 { return float64(n.Platform.directory.StandbyPhones()) })
	m.gauge("soniq_media_streams", "Media streams open, two for each call.", func() float64 { return float64(n.media.Stats().Streams) })
	m.counter("soniq_recordings_failed_total", "Recordings of calls and messages that failed or were cut short: disk full or broken.",
		func() float64 { return float64(n.media.Stats().RecordFail) })
	m.gauge("soniq_recorders", "Recordings being made.", func() float64 { return float64(n.media.Stats().Recorders) })
}

func (m *metrics) signalling(n *Server) {
	s := n.sip
	m.counter("soniq_sip_received_total", "SIP messages received.", func() float64 { return float64(s.Stats().Received) })
	m.counter("soniq_sip_sent_total", "SIP messages sent.", func() float64 { return float64(s.Stats().Sent) })
	m.counter("soniq_sip_malformed_total", "SIP messages that were malformed.", func() float64 { return float64(s.Stats().ParseErrors) })
	m.counter("soniq_sip_rejected_total", "INVITEs refused with 503 by admission control.",
		func() float64 { return float64(s.Stats().Rejected) })
	m.counter("soniq_sip_dropped_total", "SIP messages dropped: full queue, flood, banned source.",
		func() float64 { return float64(s.Stats().Dropped) })
	m.counter("soniq_sip_auth_failures_total", "Wrong user names or passwords.", func() float64 { return float64(s.Stats().AuthFailures) })
	m.counter("soniq_sip_panics_total", "Recovered panics; each one is a defect.", func() float64 { return float64(s.Stats().Panics) })
	m.gauge("soniq_sip_dialogs", "SIP dialogs alive.", func() float64 { return float64(s.Stats().Dialogs) })
}

// connections exports the HTTP connections, and the file descriptors that they share with calls.
func (m *metrics) connections(n *Server) {
	m.gauge("soniq_http_connections", "HTTP connections open.", func() float64 { c, _ := n.connections.Counts(); return float64(c) })
	m.gauge("soniq_websocket_connections", "WebSocket connections open.", func() float64 {
		_, w := n.connections.Counts()
		return float64(w)
	})
	m.gauge("soniq_descriptors_used", "File descriptors open.", func() float64 { used, _ := n.descriptors.Count(); return float64(used) })
	m.gauge("soniq_descriptors_allowed", "File descriptors that the system allows.",
		func() float64 { _, allowed := n.descriptors.Count(); return float64(allowed) })
}

// limits exports how often each limit refused something.
func (m *metrics) limits() {
	for _, l := range limit.All() {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: limit.Metric,
			Help: "Requests, calls and other work that a limit refused (docs/limits.md).", ConstLabels: prometheus.Labels{"limit": l.Name}},
			func() float64 { return float64(l.Refused()) }))
	}
}

func (m *metrics) storage(n *Server) {
	for name, folder := range map[string]string{"data": n.Platform.config.Data,
		"recordings": filepath.Join(n.Platform.config.Data, "recordings")} {
		labels := prometheus.Labels{"folder": name}
		m.registry.MustRegister(
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "soniq_disk_free_bytes", Help: "Free bytes of the disk that has the folder.",
				ConstLabels: labels}, func() float64 { free, _ := readiness.Free(folder); return float64(free) }),
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "soniq_disk_size_bytes", Help: "Bytes of the disk that has the folder.",
				ConstLabels: labels}, func() float64 { _, size := readiness.Free(folder); return float64(size) }))
	}
	d := n.Platform.db
	m.counter("soniq_db_transactions_total", "Transactions.", func() float64 { return float64(d.Stats().Transactions) })
	m.counter("soniq_db_commits_total", "Commits; on SQLite transactions share them.", func() float64 { return float64(d.Stats().Commits) })
	m.counter("soniq_db_commit_seconds_total", "Time spent committing.", func() float64 { return d.Stats().CommitTime.Seconds() })
	m.gauge("soniq_speech_backlog", "Speech segments waiting to be recognised.", func() float64 {
		if p := n.Platform.engines.pool; p != nil {
			return float64(p.Backlog())
		}
		return 0
	})
	m.counter("soniq_speech_without_words_total", "Speech segments in which no words were recognised.", func() float64 {
		if p := n.Platform.engines.pool; p != nil {
			return float64(p.Wordless())
		}
		return 0
	})
}

// status returns what soniq doctor shows about a running node.
func (s *Server) status(ctx context.Context, _ json.RawMessage) (any, error) {
	stats := s.switcher.Stats()
	without, err := s.Platform.trunks.OrgsWithoutEmergencyCalls(ctx)
	if err != nil {
		return nil, err
	}
	unreachable, err := s.Platform.trunks.UnreachableExtensions(ctx)
	if err != nil {
		return nil, err
	}
	silent, err := s.Platform.smsCarriers.FailingCarriers(ctx)
	if err != nil {
		return nil, err
	}
	unspoken, err := flow.UnspokenTexts(ctx, s.Platform.db.Read(ctx), s.Platform.orgs, func(x flow.Spoken) string {
		return reasonOf(s.Platform.engines.speech.CheckText(x.Text, x.Voice, x.Language))
	})
	if err != nil {
		return nil, err
	}
	unredactable, err := s.Platform.orgs.UnredactableAudio(ctx, s.Platform.notRecognised)
	if err != nil {
		return nil, err
	}
	return map[string]any{"version": config.Version, "without_emergency": without, "sms_carriers": silent, "unspoken": unspoken,
		"unredactable_audio":     unredactable,
		"restored":               s.Platform.copied.Notice(),
		"clock":                  reasonOf(s.Platform.clock.MayDelete()),
		"unreachable_extensions": unreachable, "http": s.HTTPAddr(),
		"sip": s.SIPAddr(), "calls": stats.Active, "calls_total": stats.Started}, nil
}
