package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"soniq/internal/api/mcp"
	"soniq/internal/api/rest"
	"soniq/internal/api/webhook"
	"soniq/internal/config"
	"soniq/internal/contactcenter/phonestate"
	"soniq/internal/control"
	"soniq/internal/customer/erasure"
	"soniq/internal/identity/auth"
	"soniq/internal/intelligence/transcript"
	"soniq/internal/platform/access"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op"
	"soniq/internal/protocol/media"
	"soniq/internal/protocol/sip"
	"soniq/internal/sandbox/testparty"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx"
)

// Server is a running Platform: signalling, media, HTTP, SMPP and background jobs.
type Server struct {
	Platform                      *Platform
	media                         *media.Engine
	sip                           *sip.Server
	switcher                      *pbx.Switch
	rest                          *rest.Server
	tools                         *mcp.Server
	listener                      net.Listener
	secure                        net.Listener // HTTPS; nil where there is none
	server                        *http.Server
	callJobs, exports, understand *job.Runner
	callbacks, messages           *job.Runner
	applications                  *job.Runner
	smpp                          smppDoors
	parties                       *testparty.Service
	messageWaiting                *phonestate.MessageWaiting
	busyLamps                     *phonestate.BusyLampField
	erasing, leaving              *job.Runner
	mails                         *job.Runner // nil where no mail is sent
	imports, connections          *job.Runner

	started    time.Time
	draining   atomic.Bool
	background sync.WaitGroup
	lines      sync.WaitGroup
	hangUp     context.CancelFunc // of the lines to carriers
	cancel     context.CancelFunc
	once       sync.Once
}

// Start opens a platform and serves it. Media and signalling come first, so that calls cut by a crash can be resumed. Then it closes
// the calls that cannot be resumed, starts jobs, and listens for HTTP. On an error everything is stopped again.
func Start(ctx context.Context, c config.Config, log *slog.Logger) (*Server, error) {
	l, err := net.Listen("tcp", c.HTTP)
	if err != nil {
		return nil, fmt.Errorf("HTTP cannot use %s: %w; choose another with --http", c.HTTP, err)
	}
	if c.BaseURL == "" {
		c.BaseURL = "http://" + l.Addr().String()
	}
	c.BaseURL = strings.TrimRight(c.BaseURL, "/")
	h, err := Open(ctx, c, log)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	n := &Server{Platform: h, listener: l, cancel: cancel, started: time.Now()}
	for _, step := range []func(context.Context) error{n.openTelephony, n.recover, n.startJobs, n.startContacts, n.startCallbacks, n.startMessages, n.startMail, n.startPartners, n.openControl, n.openSMPP, n.openHTTP} {
		if err := step(ctx); err != nil {
			n.Stop()
			return nil, err
		}
	}
	return n, nil
}

// recover resumes calls that a crash cut off, closes those that cannot be resumed, and admits new calls.
func (n *Server) recover(ctx context.Context) error {
	h := n.Platform
	if err := h.replay(ctx); err != nil {
		return err
	}
	cut, err := h.calls.Dialogs(ctx)
	if err != nil {
		return err
	}
	carried := n.switcher.Resume(ctx, cut, lastAlive(h.config.Data))
	closed, err := h.calls.Recover(ctx, lastAlive(h.config.Data), salvage, h.transcripts.Recorded,
		func(_, id string) bool { return carried[id] })
	if err == nil {
		err = errors.Join(n.recoverMessages(ctx), h.esme.Recover(ctx, lastAlive(h.config.Data)))
	}
	if closed+len(carried) > 0 {
		h.log.Warn("a crash cut calls off", "carried on", len(carried), "closed", closed)
	}
	n.switcher.Open()
	return err
}

// salvage finishes the recording that a crash cut off, or finds it finished.
func salvage(path string) (call.Audio, error) {
	r, err := media.Salvage(path + ".part")
	if errors.Is(err, os.ErrNotExist) {
		return inspect(path)
	}
	return call.Audio{Duration: r.Duration, Size: r.Size, SHA256: r.SHA256, SampleRate: r.SampleRate, Channels: r.Channels}, err
}

// unhurried is the delay between jobs in queues without a latency requirement.
const unhurried = 5 * time.Millisecond

// startJobs starts what works in the background.
func (n *Server) startJobs(ctx context.Context) error {
	h := n.Platform
	n.callJobs = &job.Runner{DB: h.db, Queue: h.jobs, Name: call.Queue, Node: h.node, Log: h.log,
		Options: job.Options{Workers: 8, PerLane: 4, Timeout: 10 * time.Minute, Pace: unhurried}}
	h.calls.Handle(n.callJobs)
	h.numbers.Handle(n.callJobs)
	if err := n.callJobs.Start(ctx); err != nil {
		return err
	}
	n.exports = &job.Runner{DB: h.db, Queue: h.jobs, Name: call.ExportQueue, Node: h.node, Log: h.log,
		Options: job.Options{Workers: 2, PerLane: 1, Timeout: 2 * time.Hour}}
	h.calls.HandleExports(n.exports)
	if err := n.exports.Start(ctx); err != nil {
		return err
	}
	n.understand = &job.Runner{DB: h.db, Queue: h.jobs, Name: transcript.Queue, Node: h.node, Log: h.log,
		Options: job.Options{Workers: 4, PerLane: 2, Timeout: 30 * time.Minute, Pace: unhurried}}
	h.transcripts.Handle(n.understand)
	if err := n.understand.Start(ctx); err != nil {
		return err
	}
	n.erasing = &job.Runner{DB: h.db, Queue: h.jobs, Name: erasure.Queue, Node: h.node, Log: h.log,
		Options: job.Options{Workers: 1, PerLane: 1, Timeout: time.Hour}}
	h.erasures.Handle(n.erasing)
	if err := n.erasing.Start(ctx); err != nil {
		return err
	}
	if err := h.hooks.Start(ctx); err != nil {
		return err
	}
	reader := &event.Reader{Outbox: h.outbox, Log: h.log, Fan: h.hooks.Fan}
	n.run(func() { reader.Run(ctx) })
	n.run(func() { h.keys.Run(ctx, h.log) })
	n.run(func() { h.tidyPersons(ctx) })
	n.run(func() { keepAlive(ctx, h.config.Data) })
	n.run(func() { n.sweep(ctx) })
	n.run(func() { h.count(ctx) })
	n.run(func() { h.devices.Watch(ctx, h.log) })
	n.run(func() { h.agents.Run(ctx, h.log) })
	n.run(func() { h.queues.Run(ctx, h.log) })
	n.run(func() { h.attendant.Distribute(ctx, h.bus) })
	n.run(func() { giveBackMemory(ctx, h.db) })
	n.run(func() { collectByLoad(ctx) })
	n.run(func() {
		if err := removeStray(filepath.Join(h.config.Data, "recordings"), n.started, n.switcher.Carries, h.log); err != nil {
			h.log.Warn("stray recordings not removed", "err", err)
		}
	})
	if err := h.shareMemory(ctx); err != nil {
		return err
	}
	n.run(func() {
		if err := h.memory.Warm(ctx); err != nil && ctx.Err() == nil {
			h.log.Warn("memory not warmed", "err", err)
		}
		h.memory.Run(ctx, h.log)
	})
	return nil
}

// startCallbacks places calls that are due, once there is a switch to place them.
func (n *Server) startCallbacks(ctx context.Context) error {
	h := n.Platform
	n.callbacks = &job.Runner{DB: h.db, Queue: h.jobs, Name: call.CallbackQueue, Node: h.node, Log: h.log,
		Options: job.Options{Workers: 4, PerLane: 2, Timeout: time.Minute}}
	h.calls.HandleCallbacks(n.callbacks)
	return n.callbacks.Start(ctx)
}

// run starts something that ends with the node's context, and is waited for.
func (n *Server) run(f func()) {
	n.background.Add(1)
	go func() {
		defer n.background.Done()
		f()
	}()
}

func (n *Server) openControl(ctx context.Context) error {
	all := n.Platform.Actions()
	all["status"], all["session"] = n.status, n.session
	return control.Listen(ctx, n.Platform.config.Data, all)
}

func (n *Server) openHTTP(context.Context) (err error) {
	h := n.Platform
	m := newMetrics(n)
	if err := n.listenHTTPS(); err != nil {
		return err
	}
	proxies, err := config.ParseNetworks("trusted-proxies", h.config.TrustedProxies)
	if err != nil {
		return err
	}
	n.rest, err = rest.New(rest.Config{
		Corridor: &op.Corridor{DB: h.db, Sealer: h.seal, Cursors: op.Cursors{Key: h.seal.Key("cursors"), Now: time.Now}, Log: h.log,
			Now: time.Now, Done: m.operation, Lacks: h.stepUp, Limiter: access.NewLimiter(time.Now), Attempts: h.config.RateAttempts},
		Operations: h.operations(), Keys: h.keys, Ready: n.ready, Metrics: m.handler(), MetricsKey: h.config.MetricsKey, Log: h.log,
		Phones: n.sip.WebSocket(), Describe: webhook.Describe, Represent: h.keys.Represent, Proxies: proxies,
		Metadata: h.oauth.ResourceMetadata(""), Doors: []func(*http.ServeMux){h.oauth.Mount, h.account.Mount, h.smsc.Mount, h.crm.Mount},
		Origins: config.SplitList(h.config.CORSOrigins), Provision: n.provisioner().Serve, Notice: h.crm.Notice,
	})
	if err != nil {
		return err
	}
	n.openTools()
	n.server = n.rest.HTTP()
	n.serveHTTP(n.listener)
	if n.secure != nil {
		n.serveHTTP(n.secure)
	}
	return nil
}

func (n *Server) serveHTTP(l net.Listener) {
	n.run(func() {
		if err := n.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			n.Platform.log.Error("HTTP ended", "err", err)
		}
	})
}

// ready says whether the node takes calls and requests.
func (n *Server) ready(ctx context.Context) error {
	if n.draining.Load() {
		return errors.New("shutting down")
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if err := n.Platform.db.Ping(ctx); err != nil {
		n.Platform.log.Error("database does not answer", "err", err)
		return errors.New("the database does not answer")
	}
	return nil
}

// HTTPAddr returns the address of the HTTP listener.
func (n *Server) HTTPAddr() string { return n.listener.Addr().String() }

// BaseURL returns the public URL of the API, without a slash at the end.
func (n *Server) BaseURL() string { return n.Platform.config.BaseURL }

// SIPAddr returns the address of the SIP listener.
func (n *Server) SIPAddr() string { return n.sip.Addr().String() }

// SecureAddrs returns the addresses of the TLS and SMPP listeners as text for the start message. It is empty if there are none.
func (n *Server) SecureAddrs() string {
	text := ""
	if n.secure != nil {
		text += " https=" + n.secure.Addr().String()
	}
	if a := n.sip.TLSAddr(); a.IsValid() {
		text += " sips=" + a.String()
	}
	text += n.smpp.String()
	return text
}

// CreateFirstKey creates an organisation and prints its API key if the installation has none.
func (n *Server) CreateFirstKey(ctx context.Context, c config.Config) error {
	all, err := n.Platform.orgs.List(ctx)
	if err != nil || len(all) > 0 {
		return err
	}
	id, err := n.Platform.CreateOrg(ctx, control.OrgRequest{Name: "My organisation", Country: c.Country})
	if err != nil {
		return err
	}
	key, err := n.Platform.CreateKey(ctx, control.KeyRequest{Org: id, Scopes: "all", Kind: string(access.StandardKey), Env: "live", Name: "first key"})
	if err != nil {
		return err
	}
	fmt.Printf("first start: organisation %s was made; its admin key, shown only now:\n%s\n", id, key)
	return nil
}

var _ rest.Verifier = (*auth.Service)(nil)
