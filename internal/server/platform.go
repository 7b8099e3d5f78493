// Package server is the composition root: it builds every package, connects them, and starts and stops them.
package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"soniq/internal/api/eventstream"
	"soniq/internal/api/webhook"
	"soniq/internal/config"
	"soniq/internal/contactcenter/agent"
	"soniq/internal/contactcenter/analytics"
	"soniq/internal/contactcenter/flow"
	"soniq/internal/contactcenter/queue"
	"soniq/internal/contactcenter/routing"
	"soniq/internal/contactcenter/routing/acd"
	"soniq/internal/customer/contact"
	"soniq/internal/customer/crm"
	"soniq/internal/customer/erasure"
	"soniq/internal/identity/auth"
	"soniq/internal/identity/org"
	"soniq/internal/identity/partner"
	"soniq/internal/identity/signin"
	"soniq/internal/identity/user"
	"soniq/internal/intelligence/memory"
	"soniq/internal/intelligence/transcript"
	"soniq/internal/intelligence/voiceagent"
	"soniq/internal/messaging/sipmessage"
	"soniq/internal/messaging/smppserver"
	"soniq/internal/messaging/sms"
	"soniq/internal/messaging/smscarrier"
	"soniq/internal/platform/audit"
	"soniq/internal/platform/blob"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/cluster"
	"soniq/internal/platform/db"
	"soniq/internal/platform/egress"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
	"soniq/internal/platform/journal"
	"soniq/internal/platform/op"
	"soniq/internal/platform/seal"
	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/protocol/stir"
	"soniq/internal/sandbox/sandbox"
	"soniq/internal/server/clocktrust"
	"soniq/internal/server/datadir"
	"soniq/internal/server/installation"
	"soniq/internal/server/restored"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/call/callback"
	"soniq/internal/telephony/call/cdr"
	"soniq/internal/telephony/call/disposition"
	"soniq/internal/telephony/call/recording"
	"soniq/internal/telephony/device"
	"soniq/internal/telephony/directory"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/pbx"
	"soniq/internal/telephony/prompt"
	"soniq/internal/telephony/trunk"
	"soniq/internal/telephony/trunkreg"
	"soniq/internal/telephony/voicemail"
)

// Platform has every service, constructed and connected, but not listening. Its lock on the data folder excludes
// other servers.
type Platform struct {
	config config.Config
	log    *slog.Logger
	lock   *os.File
	// journal is nil if the database is not SQLite. unread has the entries of a process that was killed.
	journal *journal.Journal
	unread  [][]byte
	node    string
	members *cluster.Membership
	clock   *clocktrust.Gate // of deletion by age
	// copied says whether the database is a restored copy, which sends nothing until the operator confirms it.
	copied restored.State

	db     *db.DB
	seal   *seal.Seal
	bus    *bus.Bus
	outbox *event.Outbox
	jobs   *job.Queue
	files  *blob.Dir
	guard  *egress.Guard
	mailer letterMailer // nil: no mail is sent

	orgs        *org.Service
	keys        *auth.Service
	oauth       *auth.OAuth
	signin      *signin.Service
	users       *user.Service
	agents      *agent.Service
	queues      *queue.Service
	flows       *flow.Service
	voicemail   *voicemail.Service
	devices     *device.Service
	numbers     *number.Service
	trunks      *trunk.Service
	trunkReg    *trunkreg.Registrations // set before the server listens
	calls       *call.Service
	callbacks   *callback.Service
	outcomes    *disposition.Service
	recordings  *recording.Service
	cdrs        *cdr.Service
	memory      *memory.Service
	transcripts *transcript.Service
	voiceAgents *voiceagent.Service
	partners    *partner.Service
	webhooks    *webhook.Service
	streams     *eventstream.Service
	prompts     *prompt.Service
	erasures    *erasure.Service
	analytics   *analytics.Service
	audit       *audit.Service
	messages    *sms.Service
	sipMessages *sipmessage.Service // set before the server listens
	smsCarriers *smscarrier.Service
	smppApps    *smppserver.Service
	sandbox     *sandbox.Service
	suspended   sandbox.SuspendedOrgs
	engines     engines
	limits      *trunk.Limiter
	gate        *trunk.OutboundGate
	contacts    *contact.Service
	crm         *crm.Service
	routing     *routing.Service
	acd         *acd.Service
	switcher    *pbx.Switch          // set before the server listens
	directory   *directory.Directory // set before the server listens
	verifier    *stir.Verifier       // nil: calls from trunks are not verified

	server *Server // set by Start before any request; nil: nothing listens, and jobs do not run

	owns func(sipmsg.URI) bool // reports whether a SIP URI belongs to this server; set before the server listens
}

// Open locks the data folder, migrates the database and constructs all services. The caller must Close the platform.
func Open(ctx context.Context, c config.Config, log *slog.Logger) (*Platform, error) {
	lock, err := datadir.Lock(c.Data)
	if err != nil {
		return nil, err
	}
	p := &Platform{config: c, log: log, lock: lock, bus: bus.New()}
	if err = p.open(ctx); err == nil {
		err = p.build()
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// open opens the stores: database, key, files and journal. It writes nothing if the database needs another program or key.
func (p *Platform) open(ctx context.Context) (err error) {
	if p.db, err = db.Open(ctx, p.config.DatabaseURL()); err != nil {
		return p.config.RedactError(err)
	}
	if p.seal, err = installation.Open(ctx, p.db, p.config.Data); err != nil {
		return err
	}
	if p.clock, err = clocktrust.Open(ctx, p.db, p.config.Data, clock.SystemReading(), p.log); err != nil {
		return err
	}
	if p.copied, err = restored.Open(ctx, p.db, restored.Config{Data: p.config.Data, Path: p.config.DatabaseURL(),
		As: p.config.Restored, Log: p.log}); err != nil {
		return err
	}
	p.node = p.copied.Node.Name
	p.members = cluster.New(cluster.Config{DB: p.db, Bus: p.bus, Log: p.log, Node: p.node, Version: config.Version, Work: nodeWork{p}})
	if p.files, err = blob.OpenDir(filepath.Join(p.config.Data, "recordings"), p.members); err != nil {
		return err
	}
	if err = p.openJournal(); err != nil {
		return err
	}
	targets, err := p.config.AllowedTargets()
	p.guard = egress.NewHeld(targets, p.copied.Held())
	return err
}

// openJournal opens the journal of calls if the database is SQLite.
func (p *Platform) openJournal() (err error) {
	if p.db.Name() == "sqlite" {
		p.journal, p.unread, err = journal.Open(p.config.Data)
	}
	return err
}

// replay writes the entries of the journal of a killed process into the database, and clears the journal.
func (p *Platform) replay(ctx context.Context) error {
	if p.journal == nil || len(p.unread) == 0 {
		return nil
	}
	if err := p.calls.Replay(ctx, p.unread); err != nil {
		return err
	}
	p.log.Info("calls found in the journal", "entries", len(p.unread))
	p.unread = nil
	return p.journal.Clear()
}

// build constructs the services in the order of their dependencies.
func (p *Platform) build() error {
	now := time.Now
	p.outbox = &event.Outbox{DB: p.db, Bus: p.bus, Clock: clock.Func(now)}
	p.jobs = &job.Queue{Bus: p.bus, Clock: clock.Func(now)}
	p.orgs = org.New(p.db, p.bus, now)
	plans, err := p.config.ReadPlans()
	if err == nil {
		err = p.orgs.SetPlans(context.Background(), plans)
	}
	if err != nil {
		return err
	}
	p.orgs.SetLimits(p.config.RateLimits())
	p.keys = auth.New(p.db, p.orgs, p.seal, p.bus, now, p.config.Brand)
	p.buildOAuth()
	if err := p.buildUsers(now); err != nil {
		return err
	}
	p.users.Observe(userObserver{p})
	p.buildSignin()
	p.buildDevices(now)
	p.limits = trunk.NewLimiter(now)
	p.trunks = trunk.New(trunk.Config{DB: p.db, Hosts: p.guard, Orgs: p.orgs, Sealer: p.seal, Bus: p.bus, Realm: p.config.SIPDomain,
		Limits: p.limits, Prober: trunkProber{p}, Node: p.node, Held: p.copied.Held()})
	p.buildNumbers(now)
	p.agents = agent.New(agent.Config{DB: p.db, Users: p.users, Outbox: p.outbox, Zones: p.orgs, BrowserAway: p.config.BrowserAway})
	d := contactCenterDependencies{p}
	p.queues = queue.New(queue.Config{DB: p.db, Orgs: p.orgs, Agents: p.agents, Outbox: p.outbox, Bus: p.bus, Node: p.node,
		Prompts: d, Destinations: d, Numbers: p.numbers, Flows: d, PendingReleases: d})
	p.queues.Observe(d)
	p.agents.Observe(d)
	p.agents.Observe(p.queues)
	p.flows = flow.New(flow.Config{DB: p.db, Orgs: p.orgs, Bus: p.bus, References: d, Numbers: p.numbers, Queues: p.queues, Forwards: d})
	p.voicemail = voicemail.NewService(voicemail.Config{DB: p.db, Files: p.files, Outbox: p.outbox, Bus: p.bus, Digester: p.seal,
		BaseURL: p.config.BaseURL, Node: p.node, TranscriptStatus: string(transcript.Queued)})
	p.voicemail.Observe(voicemailObserver{p})
	p.gate = trunk.NewOutboundGate(p.trunks, p.limits, p.log)
	p.buildCalls(now)
	p.webhooks = webhook.New(webhook.Config{DB: p.db, Bus: p.bus, Queue: p.jobs, Seal: p.seal, Guard: p.guard, Log: p.log,
		Node: p.node, Prefix: p.config.HookPrefix, Outbox: p.outbox, Recordings: p.recordings, Numbers: webhookNumbers{p},
		Organizations: p.orgs, Rights: p.keys})
	p.audit = &audit.Service{DB: p.db}
	p.streams = eventstream.New(eventstream.Config{Outbox: p.outbox, Credentials: credentials{p}, Changed: auth.Changed})
	if err := p.buildVerifier(now); err != nil {
		return err
	}
	if err := p.buildSpeech(); err != nil {
		return err
	}
	if err := p.buildVoiceAgents(); err != nil {
		return err
	}
	p.prompts = prompt.New(prompt.Config{DB: p.db, Files: p.files, BaseURL: p.config.BaseURL, Engine: promptDependencies{p},
		Storage: p.orgs, Uses: promptDependencies{p}})
	p.buildMessages()
	p.buildPartners(now)
	if err := p.buildSMPPServer(); err != nil {
		return err
	}
	p.buildAnalytics()
	p.buildContacts(now)
	p.buildErasure(now)
	p.buildRouting()
	p.wire()
	return nil
}

// buildCalls constructs the services of calls: callbacks, dispositions, recordings and call detail records.
// links makes the signed URLs of files.
func (p *Platform) links(now func() time.Time) call.Links {
	return call.Links{BaseURL: p.config.BaseURL, Key: p.seal.Key("addresses of audio"), Clock: clock.Func(now), Makers: p.keys}
}

func (p *Platform) buildCalls(now func() time.Time) {
	links := p.links(now)
	p.calls = call.NewService(call.Config{DB: p.db, Outbox: p.outbox, Jobs: p.jobs, Node: p.node, Links: links, Journal: p.journal,
		Log: p.log, Destinations: callDependencies{p}, Prompts: callDependencies{p}, Deliveries: callDependencies{p},
		Transcripts: callDependencies{p}, Contacts: callDependencies{p}, Queues: callDependencies{p}, Redactions: p.orgs})
	p.callbacks = callback.New(callback.Config{DB: p.db, Jobs: p.jobs, Calls: p.calls})
	p.callbacks.Observe(callObserver{p})
	p.calls.Observe(p.callbacks)
	p.calls.Observe(p.queues)
	p.outcomes = disposition.New(disposition.Config{DB: p.db, Queues: p.queues})
	p.outcomes.Observe(p.queues)
	p.outcomes.Observe(callObserver{p})
	p.recordings = recording.New(recording.Config{DB: p.db, Outbox: p.outbox, Jobs: p.jobs, Files: p.files, Calls: p.calls, Node: p.node,
		Links: links, Clock: clock.Func(now), Redactions: p.orgs})
	p.recordings.Observe(callObserver{p})
	p.calls.Observe(p.recordings)
	p.cdrs = cdr.New(cdr.Config{DB: p.db, Jobs: p.jobs, Files: p.files, Records: p.calls, StorageQuota: p.orgs, Links: links,
		Clock: clock.Func(now), Log: p.log, MayDelete: p.clock.MayJobDelete})
	p.calls.Observe(callObserver{p})
}

// wire sets the callbacks between services that need each other.
func (p *Platform) wire() {
	p.owns = func(sipmsg.URI) bool { return false } // until SIP listens
	p.wireContacts()
}

func (p *Platform) hasAudio(ctx context.Context, org, id string) (bool, error) {
	_, err := p.prompts.Path(ctx, org, id)
	if errors.Is(err, prompt.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// nilIfNotFound returns nil instead of an error if the object does not exist.
func nilIfNotFound[T any](v *T, err error) (any, error) {
	var e *op.Error
	if errors.As(err, &e) && e.Status() == http.StatusNotFound {
		return nil, nil
	}
	return v, err
}

// Close closes all services and the database, and releases the data folder.
func (p *Platform) Close() {
	p.engines.close()
	if p.contacts != nil {
		p.contacts.Close()
		p.crm.Close()
	}
	if p.smppApps != nil {
		p.smppApps.Close()
	}
	if p.verifier != nil {
		p.verifier.Close()
	}
	if p.db != nil {
		if err := p.db.Close(); err != nil {
			p.log.Error("database not closed in order", "err", err)
		}
	}
	if p.journal != nil {
		_ = p.journal.Close() // entries that were not written to the database are replayed at the next start
	}
	if p.lock != nil {
		_ = p.lock.Close()
	}
}
