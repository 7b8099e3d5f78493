// Package server is the composition root: it builds every package, joins them, starts and stops them.
package server

import (
	"context"
	"errors"
	"fmt"
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
	"soniq/internal/messaging/smppserver"
	"soniq/internal/messaging/sms"
	"soniq/internal/messaging/smscarrier"
	"soniq/internal/platform/audit"
	"soniq/internal/platform/blob"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/db"
	"soniq/internal/platform/egress"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
	"soniq/internal/platform/journal"
	"soniq/internal/platform/op"
	"soniq/internal/platform/seal"
	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/stir"
	"soniq/internal/sandbox/sandbox"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/device"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/prompt"
	"soniq/internal/telephony/trunk"
	"soniq/internal/telephony/voicemail"
)

// Platform has every service, constructed and joined, but not listening. Its lock on the data folder excludes other servers.
type Platform struct {
	config config.Config
	log    *slog.Logger
	lock   *os.File
	// journal is nil if the database is not SQLite. unread has the entries of a process that was killed.
	journal *journal.Journal
	unread  [][]byte
	node    string

	db     *db.DB
	seal   *seal.Seal
	bus    *bus.Bus
	outbox *event.Outbox
	jobs   *job.Queue
	files  *blob.Dir
	guard  *egress.Guard

	orgs        *org.Service
	keys        *auth.Service
	oauth       *auth.OAuth
	account     *signin.Service
	users       *user.Service
	agents      *agent.Service
	queues      *queue.Service
	flows       *flow.Service
	voicemail   *voicemail.Service
	devices     *device.Service
	numbers     *number.Service
	trunks      *trunk.Service
	calls       *call.Service
	memory      *memory.Service
	transcripts *transcript.Service
	assistants  *voiceagent.Service
	partners    *partner.Service
	hooks       *webhook.Service
	streams     *eventstream.Service
	audio       *prompt.Service
	erasures    *erasure.Service
	counts      *analytics.Service
	audit       *audit.Service
	messages    *sms.Service
	smsc        *smscarrier.Service
	esme        *smppserver.Service
	sandbox     *sandbox.Service
	suspended   sandbox.SuspendedOrgs
	engines     engines
	limits      *trunk.Limiter
	gate        *trunk.Gate
	contacts    *contact.Service
	crm         *crm.Service
	attendant   *routing.Service
	verifier    *stir.Verifier // nil where calls from trunks are not verified

	owns func(sip.URI) bool // reports whether a SIP URI belongs to this server; set before the server listens
}

// Open locks the data folder, migrates the database and constructs all services. The caller must Close the platform.
func Open(ctx context.Context, c config.Config, log *slog.Logger) (*Platform, error) {
	lock, err := LockDataFolder(c.Data)
	if err != nil {
		return nil, err
	}
	h := &Platform{config: c, log: log, lock: lock, bus: bus.New()}
	if err = h.open(ctx); err == nil {
		err = h.build()
	}
	if err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

// open opens what holds facts: keys, database, files.
func (h *Platform) open(ctx context.Context) (err error) {
	if h.node, err = nodeName(h.config.Data); err != nil {
		return err
	}
	if h.seal, err = seal.Open(filepath.Join(h.config.Data, "master.key")); err != nil {
		return err
	}
	if h.files, err = blob.OpenDir(filepath.Join(h.config.Data, "recordings")); err != nil {
		return err
	}
	if h.db, err = db.Open(ctx, h.config.DatabaseURL()); err != nil {
		return err
	}
	if _, err = h.db.Migrate(ctx); err != nil {
		return fmt.Errorf("bring the database up to date: %w", err)
	}
	if err = h.openJournal(); err != nil {
		return err
	}
	targets, err := h.config.AllowedTargets()
	h.guard = egress.New(targets)
	return err
}

// openJournal opens the journal of calls if the database is SQLite.
func (h *Platform) openJournal() (err error) {
	if h.db.Name() == "sqlite" {
		h.journal, h.unread, err = journal.Open(h.config.Data)
	}
	return err
}

// replay writes the entries of the journal of a killed process into the database, and clears the journal.
func (h *Platform) replay(ctx context.Context) error {
	if h.journal == nil || len(h.unread) == 0 {
		return nil
	}
	if err := h.calls.Replay(ctx, h.unread); err != nil {
		return err
	}
	h.log.Info("calls found in the journal", "entries", len(h.unread))
	h.unread = nil
	return h.journal.Clear()
}

// build constructs the services in the order of their dependencies.
func (h *Platform) build() error {
	now := time.Now
	h.outbox = &event.Outbox{DB: h.db, Bus: h.bus, Now: func() db.Time { return db.At(now()) }}
	h.jobs = &job.Queue{Bus: h.bus, Now: now}
	h.orgs = org.New(h.db, h.bus, now)
	plans, err := h.config.ReadPlans()
	if err == nil {
		err = h.orgs.SetPlans(context.Background(), plans)
	}
	if err != nil {
		return err
	}
	h.orgs.SetLimits(h.config.RateLimits())
	h.keys = auth.New(h.db, h.orgs, h.seal, h.bus, now, h.config.Brand)
	h.buildOAuth()
	h.users = user.New(h.db, h.orgs, h.outbox, h.bus, now)
	h.buildAccount()
	h.devices = device.New(h.db, h.users, h.seal, h.bus, now, h.config.SIPDomain)
	h.trunks = trunk.New(h.db, h.orgs, h.seal, h.bus, now, h.config.SIPDomain)
	h.numbers = number.New(h.db, h.orgs, h.outbox, h.bus, now)
	h.agents = agent.New(agent.Config{DB: h.db, Users: h.users, Outbox: h.outbox, Now: now, Zone: h.orgs.Zone})
	h.queues = queue.New(queue.Config{DB: h.db, Orgs: h.orgs, Agents: h.agents, Outbox: h.outbox, Bus: h.bus, Now: now, Node: h.node})
	h.flows = flow.New(flow.Config{DB: h.db, Orgs: h.orgs, Bus: h.bus, Now: now})
	h.voicemail = voicemail.NewService(voicemail.Config{DB: h.db, Files: h.files, Outbox: h.outbox, Bus: h.bus, Digest: h.seal.Digest, Now: now, BaseURL: h.config.BaseURL,
		Node: h.node})
	h.limits = trunk.NewLimiter(now)
	h.gate = trunk.NewGate(h.trunks, h.limits, h.log)
	h.calls = &call.Service{DB: h.db, Outbox: h.outbox, Jobs: h.jobs, Files: h.files, Node: h.node, BaseURL: h.config.BaseURL,
		URLKey: h.seal.Key("addresses of audio"), Now: now, Journal: h.journal}
	h.hooks = webhook.New(webhook.Config{DB: h.db, Bus: h.bus, Queue: h.jobs, Seal: h.seal, Guard: h.guard, Log: h.log, Now: now,
		Node: h.node, Prefix: h.config.HookPrefix, Outbox: h.outbox, SignRecording: h.calls.SignedURL, NumberID: h.numberID})
	h.audit = &audit.Service{DB: h.db}
	h.streams = eventstream.New(eventstream.Config{Outbox: h.outbox, Valid: h.keys.Valid, Changed: auth.Changed})
	if err := h.buildVerifier(now); err != nil {
		return err
	}
	if err := h.buildMind(now); err != nil {
		return err
	}
	if err := h.buildAssistants(now); err != nil {
		return err
	}
	h.joinAssistants()
	if err := h.buildMail(); err != nil {
		return err
	}
	h.buildPartners(now)
	h.audio = prompt.New(prompt.Config{DB: h.db, Files: h.files, Now: now, BaseURL: h.config.BaseURL, Measure: measure, Speak: h.speak,
		Room: h.orgs.Room, Admit: h.orgs.AdmitBytes})
	h.buildMessages()
	if err := h.buildESME(now); err != nil {
		return err
	}
	h.buildErasure()
	h.buildCounts()
	h.buildContacts(now)
	h.joinAttendant()
	h.join()
	return nil
}

// join sets the callbacks between services that need each other.
func (h *Platform) join() {
	h.devices.Outbox = h.outbox
	h.joinProvision()
	h.devices.Browsers = device.Browsers{Digest: h.seal.Digest, URL: h.config.WebSocketURL(), ICE: h.config.WebRTCServers}
	h.users.Provision = h.devices.Provision
	h.users.Phones = h.devices.Phones
	h.users.OnStatus = []func(context.Context, db.Querier, user.User) error{h.devices.SuspendUser,
		func(ctx context.Context, tx db.Querier, u user.User) error {
			return h.keys.SuspendUser(ctx, tx, u.OrgID, u.ID)
		},
	}
	h.users.Reserved, h.users.KeepPIN = trunk.ReservedExtension, h.voicemail.SetPIN
	h.voicemail.OnKeep = h.calls.LeaveMessage
	h.joinMessages()
	h.users.OnRemove = []func(context.Context, db.Querier, user.Removal) error{
		h.devices.RemoveUser,
		func(ctx context.Context, tx db.Querier, r user.Removal) error {
			return errors.Join(h.keys.RemoveUser(ctx, tx, r.OrgID, r.UserID), h.account.RemoveUser(ctx, tx, r.OrgID, r.UserID))
		},
		func(ctx context.Context, tx db.Querier, r user.Removal) error {
			return h.numbers.RemoveUser(ctx, tx, r.OrgID, r.UserID, r.ReassignTo)
		},
	}
	h.numbers.SameSource = h.trunks.SameSource
	h.numbers.OnRelease = []func(context.Context, db.Querier, string, string) error{h.users.ForgetNumber}
	h.devices.Emergency = func(ctx context.Context, id string) (bool, error) {
		ways, err := h.trunks.EmergencyRoute(ctx, id, "112")
		return len(ways) > 0, err
	}
	h.trunks.Active = h.limits.Running
	h.owns = func(sip.URI) bool { return false } // until signalling listens
	h.calls.Dial, h.calls.Number, h.calls.Reach, h.calls.Log = h.destination, h.e164, h.reach, h.log
	h.calls.HasAudio, h.calls.Room = h.hasAudio, h.orgs.Room
	h.joinRouting()
	h.calls.Understand = h.transcripts.Recorded
	h.calls.OnDeleted = h.memory.ForgetRecording
	h.calls.Remember, h.calls.Unremember, h.messages.Remember = h.rememberNote, h.memory.ForgetRemark, h.rememberMessage
	h.calls.OnEnd = func(ctx context.Context, tx db.Querier, e call.Ended, r call.CDR) error {
		db.OnCommit(tx, func() { h.counts.Ended(e.Org, e.StartedAt) })
		if err := h.leftQueues(ctx, tx, e, r); err != nil {
			return err
		}
		if e.Recording != "" {
			return nil
		}
		return h.transcripts.Unrecorded(ctx, tx, e.Org, r)
	}
	h.calls.Summary = func(ctx context.Context, org, id string) (any, error) {
		return found(h.transcripts.SummaryOf(ctx, org, id))
	}
	h.joinContacts()
	h.calls.Deliveries = h.hookSteps
	h.calls.Transcript = func(ctx context.Context, org, id string) (any, error) { return found(h.transcripts.Of(ctx, org, id)) }
}

func (h *Platform) hasAudio(ctx context.Context, org, id string) (bool, error) {
	_, err := h.audio.Path(ctx, org, id)
	if errors.Is(err, prompt.ErrNone) {
		return false, nil
	}
	return err == nil, err
}

// found answers nothing where there is nothing to expand.
func found[T any](v *T, err error) (any, error) {
	var e *op.Error
	if errors.As(err, &e) && e.Status() == http.StatusNotFound {
		return nil, nil
	}
	return v, err
}

// Close closes all services and the database, and releases the data folder.
func (h *Platform) Close() {
	h.engines.close()
	if h.contacts != nil {
		h.contacts.Close()
		h.crm.Close()
	}
	if h.esme != nil {
		h.esme.Close()
	}
	if h.verifier != nil {
		h.verifier.Close()
	}
	if h.db != nil {
		if err := h.db.Close(); err != nil {
			h.log.Error("database not closed in order", "err", err)
		}
	}
	if h.journal != nil {
		_ = h.journal.Close() // what is not settled is found again
	}
	if h.lock != nil {
		_ = h.lock.Close()
	}
}
