package call

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
	"soniq/internal/platform/journal"
	"soniq/internal/platform/observe"
	"soniq/internal/platform/redact"
)

// Config has the dependencies of a Service.
type Config struct {
	DB     *db.DB
	Outbox *event.Outbox
	Jobs   *job.Queue
	Node   string
	Links  Links
	Clock  clock.Clock // nil: the system clock
	// Journal makes beginnings and answers durable before their commit; nil: the caller waits for the commit.
	Journal *journal.Journal
	Log     *slog.Logger // nil: no logging

	Destinations Destinations
	Prompts      Prompts
	Deliveries   WebhookDeliveries
	Transcripts  Transcripts
	Contacts     Contacts
	Queues       Queues
	Redactions   redact.Policies // what organisations remove from notes
}

// Service stores calls and serves their API. Create it with NewService. It is safe for concurrent use.
type Service struct {
	cfg Config
	// Switch carries out commands on calls in progress; nil: this process carries no calls.
	Switch Switch

	observers      observers
	pendingInserts pendingInserts
	asyncActions   asyncActions
	createLimiter  createLimiter
	gzipWriters    sync.Pool // *gzip.Writer, for timelines
}

// NewService returns a Service. Add observers before the first call of another method; then it is safe for concurrent use.
func NewService(c Config) *Service {
	c.Clock, c.Links.Clock = clock.OrSystem(c.Clock), clock.OrSystem(c.Links.Clock)
	c.Redactions = redact.OrOff(c.Redactions)
	return &Service{cfg: c}
}

// Now returns the time of the service's clock.
func (s *Service) Now() time.Time { return s.cfg.Clock.Now() }

// New describes a call that begins. Its field names are stored as JSON in the journal.
type New struct {
	Org, ID    string
	Direction  Direction
	Source     string
	From, To   string
	FromName   string
	NumberID   string
	DeviceID   string
	TrunkID    string
	UserID     string
	Sandbox    bool
	StartedAt  time.Time
	CallerSIP  string // SIP Call-ID of the caller's leg
	CallerDev  string
	CallerUser string
	CallerLeg  string // id of the caller's leg; "" creates one

	Status    Status // Queued for calls placed by the API, else Ringing ("")
	Metadata  map[string]string
	Reference string // client_reference
	Purpose   string // reason of CallCreate: the first note of the call
	By        Author `json:",omitzero"` // author of the first note; zero: the user on whose behalf the call is made

	contact *event.Contact
}

// Party is a party that answered, or that is rung.
type Party struct {
	Role      string // callee or agent
	UserID    string
	Name      string
	Extension string
	DeviceID  string
	TrunkID   string
	Number    string
	SIPCallID string
	Codec     string
}

// Begin inserts the row of a new call and publishes call.started. When it returns, the transaction is committed, but
// a power failure within about 20 ms can lose it (db.TxRelaxed). WaitDurable waits for the disk.
func (s *Service) Begin(ctx context.Context, n New) error {
	n = s.withContact(ctx, n)
	return s.beginError(n.ID, s.cfg.DB.TxRelaxed(ctx, func(tx db.Querier) error { return s.begin(ctx, tx, n) }))
}

// WaitDurable returns once everything committed before is on disk.
func (s *Service) WaitDurable(ctx context.Context) error { return s.cfg.DB.Sync(ctx) }

// BeginAsync is Begin without waiting for the commit. Later writes of the call are ordered after it. A change that
// ChangeAsync gets while the insert is pending is written with it, as one row.
//
// then is called once with the result, possibly by the goroutine of the database writer. It must neither write nor
// wait.
func (s *Service) BeginAsync(ctx context.Context, n New, then func(error)) {
	n = s.withContact(ctx, n)
	s.beginPending(ctx, n, func(err error) { then(s.beginError(n.ID, err)) })
}

func (s *Service) beginError(id string, err error) error {
	if err != nil {
		return fmt.Errorf("begin call %s: %w", id, err)
	}
	return nil
}

func (s *Service) begin(ctx context.Context, tx db.Querier, n New) error {
	if err := insertCall(ctx, tx, n, s.cfg.Node); err != nil {
		return err
	}
	if n.hasCaller() {
		if err := insertLeg(ctx, tx, n.Org, n.ID, callerLeg(n)); err != nil {
			return err
		}
	}
	s.notifyLegs(tx, n.Org, n.ID, usersOf([]LegState{{UserID: n.CallerUser}}))
	return s.publishStarted(ctx, tx, n)
}

// notifyLegs calls the leg observers after the commit. users are those of the legs that changed; nil if not known.
func (s *Service) notifyLegs(tx db.Querier, org, id string, users []string) {
	for _, o := range s.observers.legs {
		db.OnCommit(tx, func() { o.LegsChanged(org, id, users) })
	}
}

// usersOf returns the users of legs, not nil.
func usersOf(legs []LegState) []string {
	users := make([]string, 0, len(legs))
	for _, l := range legs {
		if l.UserID != "" {
			users = append(users, l.UserID)
		}
	}
	return users
}

func callerLeg(n New) legRow {
	return legRow{Leg: Leg{ID: cmp.Or(n.CallerLeg, db.NewID("leg")), Role: "caller", Number: n.From, Status: "ringing",
		SIPCallID: n.CallerSIP, StartedAt: db.At(n.StartedAt)},
		user: n.CallerUser, device: n.CallerDev, trunk: callerTrunk(n)}
}

func callerTrunk(n New) string {
	if n.Direction == Inbound {
		return n.TrunkID
	}
	return ""
}

// Answer describes the answer of a call.
type Answer struct {
	Org, ID   string
	At        time.Time
	RingingAt time.Time
	Ring      time.Duration
	By        Party
	Codec     string
	Recording *NewRecording // nil: not recorded
}

// Answered stores the answering party and publishes call.answered. It has an effect once per call.
func (s *Service) Answered(ctx context.Context, n New, a Answer) error {
	by := "callee"
	if a.By.UserID != "" {
		by = "agent"
	}
	err := s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		if first, err := markAnswered(ctx, tx, a, by); err != nil || !first {
			return err
		}
		if err := insertLeg(ctx, tx, a.Org, a.ID, calleeLeg(a)); err != nil {
			return err
		}
		if err := answerLegs(ctx, tx, a); err != nil {
			return err
		}
		s.notifyLegs(tx, a.Org, a.ID, nil)
		if a.Recording != nil {
			if err := s.startRecording(ctx, tx, a); err != nil {
				return err
			}
		}
		return s.cfg.Outbox.Publish(ctx, tx, a.Org, event.CallAnswered{
			CallID: a.ID, Direction: string(n.Direction), FromNumber: n.From, ToNumber: n.To,
			AnsweredAt: db.At(a.At), AnsweredBy: by, AgentID: db.Null(a.By.UserID).Ptr(),
			AgentName: db.Null(a.By.Name).Ptr(), RingSeconds: seconds(a.Ring),
		})
	})
	if err != nil {
		return fmt.Errorf("answer call %s: %w", a.ID, err)
	}
	return nil
}

func calleeLeg(a Answer) legRow {
	return legRow{Leg: Leg{ID: db.NewID("leg"), Role: a.By.Role, Number: a.By.Number, Status: "answered",
		SIPCallID: a.By.SIPCallID, StartedAt: db.At(a.At.Add(-a.Ring))},
		user: a.By.UserID, device: a.By.DeviceID, trunk: a.By.TrunkID}
}

// Held stores that a side put the call on hold, or resumed it. The leg's held_by is peer: a phone did it.
func (s *Service) Held(ctx context.Context, org, id, role string, held bool, at time.Time) error {
	err := s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		if err := holdLeg(ctx, tx, org, id, role, held); err != nil {
			return err
		}
		if held {
			return markHeld(ctx, tx, org, id, at)
		}
		return clearHeld(ctx, tx, org, id, at)
	})
	if err != nil {
		return fmt.Errorf("hold call %s: %w", id, err)
	}
	return nil
}

// Ended describes a call that has ended.
type Ended struct {
	New
	Outcome
	At         time.Time
	AnsweredAt time.Time // zero if the call was not answered
	RingingAt  time.Time
	Hold       time.Duration
	Offered    int // number of phones rung
	Quality    *event.Quality
	Recording  string // id; "" if not recorded
	Codec      string

	Revision int   // of the last Change; 0: none was written
	State    State // last state, valid if Revision is not 0
	Legs     []LegState
	Monitors []MonitorState
	// StateWritten reports that the last Change has stored State.
	StateWritten bool
	// PartsComplete reports that Legs and Monitors hold all open ones; otherwise End searches the tables for others.
	// HasDialogs reports that dialogs were stored for a restart.
	PartsComplete, HasDialogs bool
}

// Answered reports whether the call was answered.
func (e Ended) Answered() bool { return !e.AnsweredAt.IsZero() }

// Status returns the final state of the call.
func (e Ended) Status() Status {
	if e.Answered() {
		return Completed
	}
	return e.finalStatus(e.Direction)
}

// enrichedWait is how long call.ended waits for recording and summary.
const enrichedWait = 30 * time.Second

// End writes the final state of a call, which is its call detail record, closes its parts and publishes the events of
// the end. It waits for the commit, which shares a group commit with other writes (db.TxAsync), because only the
// ended call waits for it. A call that has ended already is left unchanged.
func (s *Service) End(ctx context.Context, e Ended) error {
	written := s.cfg.DB.TxAsync(ctx, func(tx db.Querier) error {
		row, err := endCall(ctx, tx, e, s.Now())
		if db.IsNone(err) {
			return nil // ended already
		}
		if err != nil {
			return err
		}
		return s.writeEndParts(ctx, tx, e, row)
	})
	if err := written(); err != nil {
		return fmt.Errorf("end call %s: %w", e.ID, err)
	}
	return nil
}

func (s *Service) writeEndParts(ctx context.Context, tx db.Querier, e Ended, row Call) error {
	if err := s.endParts(ctx, tx, e); err != nil {
		return err
	}
	if row.MissedReason != nil {
		if err := s.publishMissed(ctx, tx, e, row); err != nil {
			return err
		}
	}
	if e.Recording == "" && row.Recording.RecordingID != nil { // the recording finished before the end
		e.Recording = *row.Recording.RecordingID
	}
	if err := observe.Each(s.observers.ends, func(o EndObserver) error { return o.CallEnded(ctx, tx, e, row.toCDR()) }); err != nil {
		return err
	}
	if e.Recording == "" {
		return s.publishEnded(ctx, tx, e.Org, row, event.AudienceAll, true)
	}
	if err := s.publishEnded(ctx, tx, e.Org, row, event.AudienceImmediate, false); err != nil {
		return err
	}
	if err := s.observers.finishRecordings(ctx, tx, e); err != nil {
		return err
	}
	return s.cfg.Jobs.Enqueue(ctx, tx, job.Spec{Org: e.Org, Queue: JobQueue, Lane: e.Org, Kind: enrichedTimeoutKind,
		Args: callJobArgs{e.ID}, RunAt: e.At.Add(enrichedWait), UniqueKey: enrichedTimeoutKey(e.ID)})
}

// endParts ends the legs, supervisors and recordings of a call, and deletes its resume data.
func (s *Service) endParts(ctx context.Context, tx db.Querier, e Ended) error {
	if err := writeLegs(ctx, tx, e.Org, e.ID, e.Legs); err != nil {
		return err
	}
	s.notifyLegs(tx, e.Org, e.ID, e.openUsers())
	if err := writeMonitors(ctx, tx, e.Org, e.ID, e.Monitors); err != nil {
		return err
	}
	return s.endOpenParts(ctx, tx, e)
}

// openUsers returns the users whose legs end with the call; nil if there may be others.
func (e Ended) openUsers() []string {
	if !e.PartsComplete {
		return nil
	}
	return usersOf(e.Legs)
}

// endOpenParts ends the parts that may still be open in the tables. It skips statements if it can, because it runs
// for every call.
func (s *Service) endOpenParts(ctx context.Context, tx db.Querier, e Ended) error {
	if !e.PartsComplete {
		if err := endLegs(ctx, tx, e); err != nil {
			return err
		}
		if err := creditAgent(ctx, tx, e); err != nil {
			return err
		}
		if err := endMonitors(ctx, tx, e); err != nil {
			return err
		}
	}
	if !e.PartsComplete || e.recordingID() != "" {
		if err := s.observers.stopRecordings(ctx, tx, e); err != nil {
			return err
		}
	}
	if e.PartsComplete && !e.HasDialogs {
		return nil
	}
	return deleteDialogs(ctx, tx, e.Org, e.ID)
}

func (s *Service) publishMissed(ctx context.Context, tx db.Querier, e Ended, row Call) error {
	offered, err := s.countOffers(ctx, tx, e.Org, row, e.Offered)
	if err != nil {
		return err
	}
	return s.cfg.Outbox.Publish(ctx, tx, e.Org, event.CallMissed{
		CallID: e.ID, FromNumber: e.From, ToNumber: e.To, MissedReason: *row.MissedReason,
		StartedAt: row.StartedAt, EndedAt: *row.EndedAt, WaitSeconds: row.TotalSeconds, AgentsOffered: offered, Contact: row.Contact,
		QueueID: row.QueueID, VoicemailID: db.Null(row.internal.VoicemailID).Ptr(),
	})
}

func seconds(d time.Duration) int { return int(d.Round(time.Second) / time.Second) }
