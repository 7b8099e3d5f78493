package memory

import (
	"context"

	"soniq/internal/platform/access"
	"soniq/internal/platform/op"
)

// SearchIn is a search over calls.
type SearchIn struct {
	Body SearchBody
}

// SearchBody has the query and its filters.
type SearchBody struct {
	Query     string   `json:"query" minLength:"1" maxLength:"1000" doc:"What to look for, in any words" example:"customer charged twice"`
	Phone     string   `json:"phone,omitempty" maxLength:"40" doc:"Only what was said with or written about this number, and notes of contacts that have it"`
	ContactID string   `json:"contact_id,omitempty" maxLength:"40" doc:"Only what was said with or written about this contact: its calls, its notes, and what belongs to its numbers"`
	AgentID   string   `json:"agent_id,omitempty" maxLength:"40" doc:"Only calls of this user"`
	QueueID   string   `json:"queue_id,omitempty" maxLength:"40" doc:"Only calls through this queue"`
	Direction string   `json:"direction,omitempty" enum:"inbound,outbound,internal" doc:"Only calls in this direction"`
	Tags      []string `json:"tags,omitempty" maxItems:"20" doc:"Only calls with one of these tags"`
	Since     string   `json:"since,omitempty" maxLength:"40" doc:"From this time on: RFC 3339 or YYYY-MM-DD; default six months ago"`
	Until     string   `json:"until,omitempty" maxLength:"40" doc:"Before this time: RFC 3339 or YYYY-MM-DD"`
	Kinds     []string `json:"kinds,omitempty" maxItems:"6" enum:"summary,transcript,note,voicemail,sms,fact" doc:"Only passages of these kinds"`
	Mode      string   `json:"mode,omitempty" enum:"hybrid,semantic,keyword" default:"hybrid" doc:"By meaning, by words, or both"`
	Limit     int      `json:"limit,omitempty" minimum:"1" maximum:"50" default:"10" doc:"Results at most"`
	MinScore  float64  `json:"min_score,omitempty" minimum:"0" maximum:"1" doc:"Leave out results with a lower score"`
}

// CallerIn selects a number.
type CallerIn struct {
	Phone string `path:"phone" maxLength:"40" doc:"Number of the caller, E.164 or as dialled" example:"+14155550100"`
	Limit int    `query:"limit" minimum:"1" maximum:"50" default:"10" doc:"Calls at most"`
}

// Operations returns the API operations of the call memory.
func (s *Service) Operations() []op.Operation {
	return []op.Operation{
		op.New("memory.search", "POST /memory/search", access.MemoryRead, "Search what was said on calls, by meaning and by words",
			s.search).
			Tool("search_call_memory").Reads().CountsAgainst(op.Searches),
		op.New("memory.caller", "GET /memory/callers/{phone}", access.MemoryRead, "What is remembered of a caller", s.caller).
			Tool("get_caller_memory"),
		op.New("memory.items.get", "GET /memory/items/{id}", access.MemoryRead, "Get something remembered, whole", s.getItem),
		op.New("memory.facts.add", "POST /memory/callers/{phone}/facts", access.ContactsWrite, "Write down something about a number",
			s.postFact).
			Status(201),
	}
}

func (s *Service) search(ctx context.Context, in *SearchIn) (*op.Out[Found], error) {
	b := in.Body
	since, until, err := op.Span{Since: b.Since, Until: b.Until}.In(ctx).Times()
	if err != nil {
		return nil, err
	}
	found, err := s.Search(ctx, access.Org(ctx), Query{Text: b.Query, Phone: b.Phone, ContactID: b.ContactID, AgentID: b.AgentID,
		QueueID: b.QueueID, Direction: b.Direction, Tags: b.Tags, Since: since.Time, Until: until.Time, Kinds: b.Kinds,
		Mode: b.Mode, Limit: b.Limit, MinScore: b.MinScore})
	if err != nil {
		return nil, err
	}
	return op.OK(*found)
}

func (s *Service) caller(ctx context.Context, in *CallerIn) (*op.Out[Caller], error) {
	c, err := s.Caller(ctx, access.Org(ctx), in.Phone, in.Limit)
	if err != nil {
		return nil, err
	}
	return op.OK(*c)
}
