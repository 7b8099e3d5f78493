package call

import (
	"context"
	"slices"
	"strings"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/platform/visibility"
	"soniq/internal/telephony/number"
)

// Operations lists the API operations on calls, except TagOperations.
func (s *Service) Operations() []op.Operation {
	all := []op.Operation{
		op.New("calls.list", "GET /calls", access.CallsRead, "List calls, newest first", s.List),
		op.New("calls.live", "GET /calls/live", access.CallsRead, "List calls in progress", s.Live).Tool("get_live_calls"),
		op.New("calls.missed", "GET /calls/missed", access.CallsRead, "List missed calls", s.ListMissed).Tool("get_missed_calls"),
		op.New("calls.get", "GET /calls/{id}", access.CallsRead, "Get one call", s.Get),
		op.New("calls.create", "POST /calls", access.CallsWrite, "Start an outbound call",
			s.Create).WithSideEffects().Status(201).Tool("make_call").
			Fails("destination_not_allowed", "number_not_owned", "concurrency_limit", "not_found"),
	}
	return slices.Concat(all, s.actionOperations(), s.transferOperations(), s.monitorOperations(), s.noteOperations(),
		s.timelineOperations())
}

// Filters holds the filters of the lists of calls and of call detail records.
type Filters struct {
	Status        []string `query:"status" doc:"One or more states" enum:"queued,ringing,in_progress,on_hold,completed,missed,no_answer,busy,failed,canceled"`
	Direction     string   `query:"direction" enum:"inbound,outbound,internal"`
	Phone         string   `query:"phone" maxLength:"40" doc:"Either side's number"`
	FromNumber    string   `query:"from_number" maxLength:"40"`
	ToNumber      string   `query:"to_number" maxLength:"40"`
	AgentID       string   `query:"agent_id" maxLength:"40"`
	QueueID       string   `query:"queue_id" maxLength:"40"`
	NumberID      string   `query:"number_id" maxLength:"40"`
	FlowID        string   `query:"flow_id" maxLength:"40"`
	ContactID     string   `query:"contact_id" maxLength:"40"`
	HasRecording  string   `query:"has_recording" enum:"true,false"`
	HasTranscript string   `query:"has_transcript" enum:"true,false"`
	Sentiment     string   `query:"sentiment" enum:"positive,neutral,negative,mixed"`
	Tag           []string `query:"tag" doc:"One or more tags, all of which the call has" maxItems:"20"`
	MinTalk       int      `query:"min_talk_seconds" minimum:"0"`
	Q             string   `query:"q" maxLength:"200" doc:"Text in the summary"`
	op.Span
	op.Paging
	phoneSide phoneSide // side on which Phone must match
}

// storeForms replaces the numbers by their stored forms.
func (in *Filters) storeForms(ctx context.Context, q db.Querier, org string) error {
	return number.StoreForms(ctx, q, org, &in.Phone, &in.FromNumber, &in.ToNumber)
}

// apply adds the conditions to f. since and until apply to column.
func (in Filters) apply(f *db.Filter, column string) error {
	since, until, err := in.Times()
	if err != nil {
		return err
	}
	f.In("status", in.Status).Equal("direction", in.Direction).Equal("from_number", in.FromNumber).
		Equal("to_number", in.ToNumber).Equal("agent_id", in.AgentID).Equal("queue_id", in.QueueID).
		Equal("number_id", in.NumberID).Equal("flow_id", in.FlowID).Equal("contact_id", in.ContactID).Equal("sentiment",
		in.Sentiment).Between(column, since, until)
	switch phone := in.Phone; {
	case phone == "":
	case in.phoneSide == callerSide:
		f.And("from_number = ?", phone)
	case in.phoneSide == calleeSide:
		f.And("to_number = ? AND from_number <> ?", phone, phone)
	default:
		f.And("from_number = ? OR to_number = ?", phone, phone)
	}
	filterBool(f, in.HasRecording, "recording_ready = TRUE", "recording_ready = FALSE")
	filterBool(f, in.HasTranscript, "transcript_id IS NOT NULL", "transcript_id IS NULL")
	for _, t := range in.Tag {
		f.And(hasTag, tagName(t))
	}
	if in.MinTalk > 0 {
		f.And("talk_seconds >= ?", in.MinTalk)
	}
	if in.Q != "" {
		f.And(`lower(ai_summary) LIKE ? ESCAPE '\'`, "%"+strings.ToLower(db.Escape(in.Q))+"%")
	}
	return nil
}

// hasTag selects calls with the tag of a name.
const hasTag = `EXISTS (SELECT 1 FROM call_tags t JOIN tags n ON n.org_id = t.org_id AND n.id = t.tag_id
	WHERE t.org_id = calls.org_id AND t.call_id = calls.id AND n.name = ?)`

func filterBool(f *db.Filter, want, yes, no string) {
	switch want {
	case "true":
		f.And(yes)
	case "false":
		f.And(no)
	}
}

// ListIn holds the filters of List.
type ListIn struct {
	Filters
	Disposition string `query:"disposition" maxLength:"120"`
	Sort        string `query:"sort" enum:"-started_at,started_at,-talk_duration_seconds,talk_duration_seconds" default:"-started_at"`
}

// sorts maps the names of sort orders to columns.
var sorts = map[string]string{"started_at": "started_at", "ended_at": "ended_at", "talk_duration_seconds": "talk_seconds"}

func parseSort(sort string) (column string, descending bool) {
	name, descending := strings.CutPrefix(sort, "-")
	return sorts[name], descending
}

// position returns a function that computes the cursor position of a call in a page sorted by column.
func position(column string) func(Call) op.Position {
	return func(c Call) op.Position {
		switch column {
		case "talk_seconds":
			return op.Position{Int: int64(c.TalkDurationSeconds), ID: c.ID}
		case "ended_at":
			return op.Position{Int: c.EndedAt.UnixMicro(), ID: c.ID}
		}
		return op.Position{Int: c.StartedAt.UnixMicro(), ID: c.ID}
	}
}

// List lists calls.
func (s *Service) List(ctx context.Context, in *ListIn) (*op.Out[op.Page[Call]], error) {
	all := func(columns string) *db.Filter {
		return db.Where(`SELECT `+columns+` FROM calls WHERE org_id = $1`, access.Org(ctx)).Equal("disposition", in.Disposition)
	}
	return s.page(ctx, in.Filters, all, in.Sort, "started_at")
}

// page reads one page of calls. base returns the statement, in adds its filters, count is the statement for
// include_total, and since and until apply to the column span.
func (s *Service) page(ctx context.Context, in Filters, base func(columns string) *db.Filter,
	sort, span string) (*op.Out[op.Page[Call]], error) {
	after, err := in.After(ctx)
	if err != nil {
		return nil, err
	}
	view, err := visibility.From(ctx, s.cfg.DB.Read(ctx))
	if err != nil {
		return nil, err
	}
	if err := in.storeForms(ctx, s.cfg.DB.Read(ctx), access.Org(ctx)); err != nil {
		return nil, err
	}
	column, descending := parseSort(sort)
	var calls []Call
	for _, side := range in.splitByPhoneSide() {
		f := view.Narrow(base(callColumns), "id")
		if err := side.apply(f, span); err != nil {
			return nil, err
		}
		found, err := queryCalls(ctx, s.cfg.DB.Read(ctx), f.Page(column, descending, after.Int, after.ID, in.Limit))
		if err != nil {
			return nil, err
		}
		calls = mergePages(calls, found, column, descending, in.Limit+1)
	}
	for i := range calls {
		s.setRecordingURL(&calls[i])
	}
	if err := s.addQueueWaits(ctx, access.Org(ctx), calls); err != nil {
		return nil, err
	}
	out := op.Paged(ctx, in.Paging, calls, position(column))
	if in.IncludeTotal {
		out.Body.Total, err = s.total(ctx, in, span, view.Narrow(base("count(*)"), "id"))
	}
	return out, err
}

// total adds the filters to a statement that counts calls, and runs it.
func (s *Service) total(ctx context.Context, in Filters, span string, f *db.Filter) (*int, error) {
	if err := in.apply(f, span); err != nil {
		return nil, err
	}
	text, args := f.SQL()
	var n int
	err := s.cfg.DB.Read(ctx).QueryRow(ctx, text, args...).Scan(&n)
	return &n, err
}

// LiveIn holds the filters of Live.
type LiveIn struct {
	Direction string `query:"direction" enum:"inbound,outbound,internal"`
	Stage     string `query:"stage" enum:"none,routing,ivr,ai_agent,queue,agent,voicemail,transfer,conference"`
	AgentID   string `query:"agent_id" maxLength:"40"`
	QueueID   string `query:"queue_id" maxLength:"40"`
}

// Snapshot holds the calls in progress at one moment, at most maxLive.
type Snapshot struct {
	Data []Call  `json:"data" nullable:"false"`
	AsOf db.Time `json:"as_of"`
}

// Live lists calls in progress, with their legs.
func (s *Service) Live(ctx context.Context, in *LiveIn) (*op.Out[Snapshot], error) {
	org := access.Org(ctx)
	q := s.cfg.DB.Read(ctx)
	view, err := visibility.From(ctx, q)
	if err != nil {
		return nil, err
	}
	calls, err := liveCalls(ctx, q, org, view)
	if err != nil {
		return nil, err
	}
	shown := []Call{}
	for _, c := range calls {
		if in.matches(c) {
			s.setRecordingURL(&c)
			shown = append(shown, c)
		}
	}
	if err := legsOf(ctx, q, org, shown); err != nil {
		return nil, err
	}
	if err := s.addQueueWaits(ctx, org, shown); err != nil {
		return nil, err
	}
	return op.OK(Snapshot{Data: shown, AsOf: db.At(s.Now())})
}

func (in *LiveIn) matches(c Call) bool {
	is := func(want string, have *string) bool { return want == "" || have != nil && *have == want }
	stage, direction := c.Stage, string(c.Direction)
	return is(in.Direction, &direction) && is(in.Stage, &stage) && is(in.AgentID, c.AgentID) && is(in.QueueID, c.QueueID)
}

// MissedIn holds the filters of ListMissed.
type MissedIn struct {
	QueueID string `query:"queue_id" maxLength:"40"`
	AgentID string `query:"agent_id" maxLength:"40"`
	Handled string `query:"handled" enum:"true,false" doc:"false: only those without a later connected call with that number"`
	op.Span
	op.Paging
}

// connectedSince selects missed calls after which a call with the same number was answered.
const connectedSince = `EXISTS (SELECT 1 FROM calls n WHERE n.org_id = calls.org_id AND n.started_at > calls.started_at
	AND n.answered_at IS NOT NULL AND (n.from_number = calls.from_number OR n.to_number = calls.from_number))`

// ListMissed lists missed calls, newest first.
func (s *Service) ListMissed(ctx context.Context, in *MissedIn) (*op.Out[op.Page[Call]], error) {
	all := func(columns string) *db.Filter {
		f := db.Where(`SELECT `+columns+` FROM calls WHERE org_id = $1 AND missed_reason IS NOT NULL`, access.Org(ctx))
		filterBool(f, in.Handled, connectedSince, "NOT "+connectedSince)
		return f
	}
	filters := Filters{QueueID: in.QueueID, AgentID: in.AgentID, Span: in.Span, Paging: in.Paging}
	return s.page(ctx, filters, all, "-started_at", "started_at")
}

// GetIn holds the input of Get.
type GetIn struct {
	ID     string   `path:"id" maxLength:"40"`
	Expand []string `query:"expand" enum:"legs,notes,summary,transcript"`
}

// Get returns one call.
func (s *Service) Get(ctx context.Context, in *GetIn) (*op.Out[Call], error) {
	org := access.Org(ctx)
	q := s.cfg.DB.Read(ctx)
	c, err := getCall(ctx, q, org, in.ID)
	if db.IsNone(err) {
		return nil, op.NotFound("call")
	}
	if err != nil {
		return nil, err
	}
	one := []Call{c}
	s.setRecordingURL(&one[0])
	if err := s.addQueueWaits(ctx, org, one); err != nil {
		return nil, err
	}
	if err := s.expand(ctx, org, in.Expand, one); err != nil {
		return nil, err
	}
	return op.OK(one[0])
}

func (s *Service) expand(ctx context.Context, org string, what []string, one []Call) (err error) {
	for _, w := range what {
		switch {
		case w == "legs":
			err = legsOf(ctx, s.cfg.DB.Read(ctx), org, one)
		case w == "notes":
			one[0].Notes, err = s.queryNotes(ctx, notesOf(org, one[0].ID).Page("created_at", false, nil, "", maxNotes))
		case w == "summary" && s.cfg.Transcripts != nil:
			one[0].Summary, err = s.cfg.Transcripts.Summary(ctx, org, one[0].ID)
		case w == "transcript" && s.cfg.Transcripts != nil:
			one[0].Transcript, err = s.cfg.Transcripts.Transcript(ctx, org, one[0].ID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
