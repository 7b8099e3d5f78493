package call

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
	"soniq/internal/platform/journal"
)

// Service keeps calls.
type Service struct {
	DB      *db.DB
	Outbox  *event.Outbox
	Jobs    *job.Queue
	Files   Files
	Node    string
	BaseURL string // without a slash at the end
	URLKey  []byte // signs addresses of audio
	Now     func() time.Time
	// Journal makes beginnings and answers sure before they are committed; nil: their commit is waited for.
	Journal *journal.Journal

	// Summary and Transcript answer expand=summary and expand=transcript; nil where there is none.
	Summary, Transcript func(ctx context.Context, org, callID string) (any, error)
	// Switch carries out commands on calls in progress; nil where this process carries no calls.
	Switch Switch
	// Dial reads a destination as asked for: a number of the world, an extension ("ext:100") or a sip: address. It returns
	// what to give the switch, or a *op.Error about the member "to". nil: nothing can be dialled.
	Dial func(ctx context.Context, org, to string) (string, error)
	// Number reads a number as people write it in the country of the organisation, and returns it in E.164.
	Number func(ctx context.Context, org, text string) (e164 string, ok bool, err error)
	// Reach says what is wrong with a destination such as queue:que_…, or ""; nil: there are none.
	Reach func(ctx context.Context, org, to string) (wrong string, err error)
	// HasAudio reports whether the organisation has an audio file; nil where there are none.
	HasAudio func(ctx context.Context, org, id string) (bool, error)
	// Room refuses where an organisation may keep no more files; nil: all may.
	Room func(ctx context.Context, org string) error
	// Deliveries tells how webhooks were told of a call; nil where there are none.
	Deliveries func(ctx context.Context, org, callID string) ([]Step, error)
	// Understand is OnRecorded for calls whose recordings are finished before their end; may be nil.
	Understand OnRecorded
	// Remember is told of a note in the transaction that writes it, and of the number outside that the call was with; Unremember of one
	// that is deleted. They may be nil.
	Remember   func(ctx context.Context, tx db.Querier, org string, n Note, phone string) error
	Unremember func(ctx context.Context, tx db.Querier, org, noteID string) error
	// OnDeleted is called in the transaction in which a recording is deleted; may be nil.
	OnDeleted func(ctx context.Context, tx db.Querier, org, callID, recordingID string) error
	Log       *slog.Logger // nil: nothing is logged
	// Contact is who a number outside belongs to, as far as is known without waiting; nil where nobody is asked.
	Contact func(ctx context.Context, org, number string) *event.Contact
	// OnNote is called for a note that is to be written to connected systems, in the same transaction; may be nil.
	OnNote func(ctx context.Context, tx db.Querier, org string, n Note) error
	// NoteSyncs tells how far notes have come to connected systems; may be nil.
	NoteSyncs func(ctx context.Context, q db.Querier, org string, notes []string) (map[string][]NoteSync, error)

	beginnings beginnings

	under   under
	pace    pace
	packers sync.Pool // *gzip.Writer, of stories

	// OnLegs is told, once that is committed, of calls in which somebody is rung, has answered, or is gone; may be nil.
	OnLegs func(org, callID string)
	// OnAnswer is called in the transaction that says somebody was connected; may be nil. It is asked of every call.
	OnAnswer func(ctx context.Context, tx db.Querier, org, callID string) error
	// Waits tells how the callers of calls in progress have waited in queues; nil where there are no queues.
	Waits func(ctx context.Context, q db.Querier, org string, calls []string) (map[string]QueueWait, error)
	// Offered tells the agents that were rung for calls, and QueueNames the names of queues; both nil where there are no queues.
	Offered    func(ctx context.Context, q db.Querier, org string, calls []string) (map[string][]OfferedAgent, error)
	QueueNames func(ctx context.Context, q db.Querier, org string, ids []string) (map[string]string, error)
	// OnCallbackCanceled is called in the transaction that cancels a callback of a queue, with the call whose caller awaits it; may be nil.
	OnCallbackCanceled func(ctx context.Context, tx db.Querier, org, origin string) error
	// OnMore is called in the transaction in which more is known of a call: its words, its summary, its recording; may be nil.
	OnMore func(ctx context.Context, tx db.Querier, org, callID string) error
	// OnEnd is called in the transaction that ends a call, with its record; may be nil.
	OnEnd func(ctx context.Context, tx db.Querier, e Ended, r CDR) error
}

// New is a call that begins.
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
	CallerSIP  string // Call-ID of the caller's leg
	CallerDev  string
	CallerUser string
	CallerLeg  string // id of the caller's leg; "" makes one

	Status    Status // Queued for calls we place, else Ringing ("")
	Metadata  map[string]string
	Reference string // client_reference
	Purpose   string // why the call is made (reason of CallCreate): its first note
	By        Author `json:",omitzero"` // who says so; zero: the user on whose behalf it is made

	contact *event.Contact
}

// A Party is who answered, or is rung.
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

// Begin writes the row of a new call and tells call.started. It is committed then; the disk has it soon, or when Settled returns.
func (s *Service) Begin(ctx context.Context, n New) error {
	n.contact = s.contactOf(ctx, n)
	return s.begun(n.ID, s.DB.Swift(ctx, func(tx db.Querier) error { return s.begin(ctx, tx, n) }))
}

// Settled returns when the disk has all that was written of calls before.
func (s *Service) Settled(ctx context.Context) error { return s.DB.Settled(ctx) }

// BeginLater is Begin for a call that need not wait: what is written of it afterwards comes after its beginning, and then is told once whether
// that is written, perhaps by who writes: it must neither write nor wait. What ChangeLater is given while the beginning waits for the database is
// written with it, as one row.
func (s *Service) BeginLater(ctx context.Context, n New, then func(error)) {
	n.contact = s.contactOf(ctx, n)
	s.beginLater(ctx, n, func(err error) { then(s.begun(n.ID, err)) })
}

func (s *Service) begun(id string, err error) error {
	if err != nil {
		return fmt.Errorf("begin call %s: %w", id, err)
	}
	return nil
}

func (s *Service) begin(ctx context.Context, tx db.Querier, n New) error {
	if err := insert(ctx, tx, n, s.Node); err != nil {
		return err
	}
	if n.hasCaller() {
		if err := insertLeg(ctx, tx, n.Org, n.ID, callerLeg(n)); err != nil {
			return err
		}
	}
	return s.tellBegun(ctx, tx, n)
}

// touch tells OnLegs of a call.
func (s *Service) touch(tx db.Querier, org, id string) {
	if s.OnLegs != nil {
		db.OnCommit(tx, func() { s.OnLegs(org, id) })
	}
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

// Answer is the moment somebody is connected.
type Answer struct {
	Org, ID   string
	At        time.Time
	RingingAt time.Time
	Ring      time.Duration
	By        Party
	Codec     string
	Recording *NewRecording // nil: not recorded
}

// Answered says who answered, and tells call.answered. Only the first call of it for a call does anything.
func (s *Service) Answered(ctx context.Context, n New, a Answer) error {
	by := "callee"
	if a.By.UserID != "" {
		by = "agent"
	}
	err := s.DB.Tx(ctx, func(tx db.Querier) error {
		if first, err := answered(ctx, tx, a, by); err != nil || !first {
			return err
		}
		if err := insertLeg(ctx, tx, a.Org, a.ID, calleeLeg(a)); err != nil {
			return err
		}
		if err := answerLegs(ctx, tx, a); err != nil {
			return err
		}
		s.touch(tx, a.Org, a.ID)
		if a.Recording != nil {
			if err := s.startRecording(ctx, tx, a); err != nil {
				return err
			}
		}
		return s.Outbox.Publish(ctx, tx, a.Org, event.CallAnswered{
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

// Held says that a side put the call on hold, or took it off again. By is peer for a phone.
func (s *Service) Held(ctx context.Context, org, id, role string, held bool, at time.Time) error {
	err := s.DB.Tx(ctx, func(tx db.Querier) error {
		if err := holdLeg(ctx, tx, org, id, role, held); err != nil {
			return err
		}
		if held {
			return hold(ctx, tx, org, id, at)
		}
		return unhold(ctx, tx, org, id, at)
	})
	if err != nil {
		return fmt.Errorf("hold call %s: %w", id, err)
	}
	return nil
}

// Ended is a call that is over.
type Ended struct {
	New
	Outcome
	At         time.Time
	AnsweredAt time.Time // zero when nobody connected
	RingingAt  time.Time
	Hold       time.Duration
	Offered    int // phones rung
	Quality    *event.Quality
	Recording  string // id; "" when not recorded
	Codec      string

	Revision int   // of the last Change before; 0: none was written
	State    State // as it was last, where Revision is not 0
	Legs     []LegState
	Monitors []MonitorState
	// Settled says that State is what the last Change wrote.
	Settled bool
	// Whole says that Legs and Monitors are all that were left open, which else is looked for, and Suspendable that dialogs
	// were kept for a restart.
	Whole, Suspendable bool
}

// Answered reports whether anybody was connected.
func (e Ended) Answered() bool { return !e.AnsweredAt.IsZero() }

// Status is the state the call ends in.
func (e Ended) Status() Status {
	if e.Answered() {
		return Completed
	}
	return e.last(e.Direction)
}

// enrichedWait is how long call.ended waits for recording and summary.
const enrichedWait = 30 * time.Second

// End writes the call's last state, which is its call detail record, and everything that follows from it. Nobody waits for it but
// the call, which is over: its commit is shared with others.
func (s *Service) End(ctx context.Context, e Ended) error {
	written := s.DB.Later(ctx, func(tx db.Querier) error {
		row, err := end(ctx, tx, e, s.Now())
		if db.IsNone(err) {
			return nil // over already
		}
		if err != nil {
			return err
		}
		return s.ended(ctx, tx, e, row)
	})
	if err := written(); err != nil {
		return fmt.Errorf("end call %s: %w", e.ID, err)
	}
	return nil
}

func (s *Service) ended(ctx context.Context, tx db.Querier, e Ended, row Call) error {
	if err := s.endParts(ctx, tx, e); err != nil {
		return err
	}
	if e.Source == "callback" {
		if err := s.attempted(ctx, tx, e.Org, e.ID, string(row.Status), e.Answered()); err != nil {
			return err
		}
	}
	if row.MissedReason != nil {
		if err := s.publishMissed(ctx, tx, e, row); err != nil {
			return err
		}
	}
	if e.Recording == "" && row.Recording.RecordingID != nil { // made and finished before the end
		e.Recording = *row.Recording.RecordingID
	}
	if s.OnEnd != nil {
		if err := s.OnEnd(ctx, tx, e, row.record()); err != nil {
			return err
		}
	}
	if e.Recording == "" {
		return s.publishEnded(ctx, tx, e.Org, row, event.Everybody, true)
	}
	if err := s.publishEnded(ctx, tx, e.Org, row, event.Immediate, false); err != nil {
		return err
	}
	if err := s.understand(ctx, tx, e.Org, e.ID, s.Understand); err != nil {
		return err
	}
	return s.Jobs.Enqueue(ctx, tx, job.Spec{Org: e.Org, Queue: Queue, Lane: e.Org, Kind: announceKind,
		Args: reference{e.ID}, RunAt: e.At.Add(enrichedWait), UniqueKey: announceKey(e.ID)})
}

// endParts ends the legs, supervisors and recordings of a call, and drops what a restart would have needed.
func (s *Service) endParts(ctx context.Context, tx db.Querier, e Ended) error {
	if err := writeLegs(ctx, tx, e.Org, e.ID, e.Legs); err != nil {
		return err
	}
	s.touch(tx, e.Org, e.ID)
	if err := writeMonitors(ctx, tx, e.Org, e.ID, e.Monitors); err != nil {
		return err
	}
	return endOpen(ctx, tx, e)
}

// endOpen ends what may still be open in the tables. Each statement that is spared counts: every call comes through here.
func endOpen(ctx context.Context, tx db.Querier, e Ended) error {
	if !e.Whole {
		if err := endLegs(ctx, tx, e); err != nil {
			return err
		}
		if err := endMonitors(ctx, tx, e); err != nil {
			return err
		}
	}
	if !e.Whole || e.recordingID() != "" {
		if err := stopRecordings(ctx, tx, e.Org, e.ID, e.At); err != nil {
			return err
		}
	}
	if e.Whole && !e.Suspendable {
		return nil
	}
	return dropDialogs(ctx, tx, e.Org, e.ID)
}

func (s *Service) publishMissed(ctx context.Context, tx db.Querier, e Ended, row Call) error {
	offered, err := s.offers(ctx, tx, e.Org, row, e.Offered)
	if err != nil {
		return err
	}
	return s.Outbox.Publish(ctx, tx, e.Org, event.CallMissed{
		CallID: e.ID, FromNumber: e.From, ToNumber: e.To, MissedReason: *row.MissedReason,
		StartedAt: row.StartedAt, EndedAt: *row.EndedAt, WaitSeconds: row.TotalSeconds, AgentsOffered: offered, Contact: row.Contact,
		QueueID: row.QueueID, VoicemailID: db.Null(row.facts.VoicemailID).Ptr(),
	})
}

func seconds(d time.Duration) int { return int(d.Round(time.Second) / time.Second) }
