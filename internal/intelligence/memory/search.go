package memory

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/visibility"
)

// Numbers of passages of an organisation that are ranked exactly.
const (
	nearCandidates = 400 // nearest by meaning
	wordCandidates = 200 // best by words
	phoneRows      = 2000
)

// Query selects passages. Zero members do not restrict.
type Query struct {
	Text      string
	Phone     string
	ContactID string
	AgentID   string
	QueueID   string
	Direction string
	Tags      []string // passages of calls with at least one of them
	Since     time.Time
	Until     time.Time
	Kinds     []string
	Mode      string
	Limit     int
	MinScore  float64

	view visibility.View // what the caller of Search sees
}

// Person is the contact or agent of a result.
type Person struct {
	ID      string  `json:"id"`
	Name    string  `json:"name"`
	Company *string `json:"company,omitempty"`
}

// Result is a passage that was found: the best of its call.
type Result struct {
	ID           string  `json:"id" doc:"Passage" example:"mem_01J00000000000000000000000"`
	Kind         string  `json:"kind" enum:"summary,transcript,note,voicemail,sms,fact" doc:"What the passage is part of"`
	CallID       *string `json:"call_id" doc:"Call it was said on"`
	MessageID    *string `json:"message_id"`
	VoicemailID  *string `json:"voicemail_id"`
	Text         string  `json:"text" doc:"The passage, 600 characters at most"`
	Score        float64 `json:"score" minimum:"0" maximum:"1" doc:"How well it answers; below 0.3 hardly at all"`
	Matched      string  `json:"matched" enum:"semantic,keyword,both" doc:"Whether meaning, words or both agree with the query"`
	OccurredAt   db.Time `json:"occurred_at" doc:"Start of the call; of what people wrote: when they did"`
	StartMS      *int    `json:"start_ms" doc:"Start of the passage in the recording"`
	EndMS        *int    `json:"end_ms"`
	Phone        string  `json:"phone" doc:"Number of the other side; empty where there is none, as with notes of contacts"`
	Contact      *Person `json:"contact"`
	Agent        *Person `json:"agent"`
	Direction    *string `json:"direction" enum:"inbound,outbound,internal"`
	AISummary    *string `json:"ai_summary" doc:"Summary of the call"`
	RecordingURL *string `json:"recording_url" doc:"Recording, at the passage"`
}

// Found is the response to a query.
type Found struct {
	Results []Result `json:"results" nullable:"false"`
	TookMS  int      `json:"took_ms" doc:"Time the search took, milliseconds, rounded up"`
	Index   struct {
		Model
		AsOf db.Time `json:"as_of" doc:"Everything learnt before is searched"`
	} `json:"index"`
}

// Search returns passages, facts, notes and messages of one organisation, at most one passage per call, best first.
func (s *Service) Search(ctx context.Context, org string, in Query) (*Found, error) {
	began := time.Now()
	in = s.defaults(in)
	var err error
	if in.view, err = visibility.From(ctx, s.db.Read(ctx)); err != nil {
		return nil, err
	}
	q, err := s.question(ctx, in)
	if err != nil {
		return nil, err
	}
	out := &Found{Results: []Result{}}
	out.Index.Model, out.Index.AsOf = q.model, db.At(s.now())
	if len(q.terms) > 0 {
		rows, err := s.rows(ctx, org, in, q)
		if err != nil {
			return nil, err
		}
		if out.Results, err = s.results(ctx, org, in, q, q.rank(rows)); err != nil {
			return nil, err
		}
	}
	out.TookMS = millis(time.Since(began))
	return out, nil
}

// millis converts to milliseconds and rounds up, so that no duration becomes 0.
func millis(d time.Duration) int { return int(math.Ceil(float64(d) / float64(time.Millisecond))) }

// defaults sets missing members and limits the query to the window.
func (s *Service) defaults(in Query) Query {
	if oldest := s.now().Add(-s.window); in.Since.Before(oldest) {
		in.Since = oldest
	}
	if in.Until.IsZero() {
		in.Until = s.now().Add(time.Hour) // clocks of servers differ
	}
	if in.Limit <= 0 {
		in.Limit = 10
	}
	if in.Mode == "" {
		in.Mode = Hybrid
	}
	return in
}

// question prepares the query's words and vector. If a remote embedder fails, only words are searched, except in
// semantic mode, where that is an error.
func (s *Service) question(ctx context.Context, in Query) (*question, error) {
	q := &question{text: in.Text, terms: unique(s.lexicon.Terms(in.Text)), mode: in.Mode, lexicon: s.lexicon, model: s.model()}
	if s.embedder == nil || in.Mode == Keyword {
		return q, nil
	}
	v, err := s.embedder.Embed(ctx, []string{in.Text})
	switch {
	case err == nil:
		q.vector, q.model = v[0], s.embedder.Model()
	case in.Mode == Semantic:
		return nil, fmt.Errorf("embed query: %w", err)
	}
	return q, nil
}

// rowsOfPhoneOrContact reads the passages of one number or contact that a filter allows.
func (s *Service) rowsOfPhoneOrContact(ctx context.Context, org string, in Query, f filter) (rows []row, err error) {
	since, until, phone := db.At(in.Since), db.At(in.Until), ""
	if in.Phone != "" {
		phone = s.phone(ctx, org, in.Phone)
	}
	each := func(r row) {
		m := filterFields{r.at.UnixMicro(), idHash(r.agent), idHash(r.queue), kindNumber(r.kind), directionNumber(r.direction)}
		if f.allows(&m, r.key) && (in.ContactID == "" || phone == "" || r.phone == phone) {
			rows = append(rows, r)
		}
	}
	if in.ContactID != "" {
		err = s.rowsOfContact(ctx, org, in.ContactID, since, until, each)
	} else {
		err = s.rowsOfNumber(ctx, org, phone, since, until, each)
	}
	return rows, err
}

// rows reads the passages to rank: those of a number or contact from the database, those of an organisation with an
// index, either in memory or in the database.
func (s *Service) rows(ctx context.Context, org string, in Query, q *question) ([]row, error) {
	f := filterOf(in)
	if in.Phone != "" || in.ContactID != "" {
		var err error
		if f.shown, err = s.shownKeys(ctx, org, in.view); err != nil {
			return nil, err
		}
		rows, err := s.rowsOfPhoneOrContact(ctx, org, in, f)
		q.addSimilar(presentIn(rows))
		q.rarities = raritiesOfRows(q.terms, rows)
		return rows, wrapError("read memory of a number or contact", err)
	}
	near, byWord := nearCandidates, wordCandidates
	if len(in.Tags) > 0 {
		near, byWord = 4*near, 4*byWord // some are dropped when tags are compared
	}
	there, err := s.usesDatabaseIndex(ctx, org)
	if err != nil {
		return nil, err
	}
	if there {
		return s.databaseRows(ctx, org, in, q, near, byWord)
	}
	if f.shown, err = s.shownKeys(ctx, org, in.view); err != nil {
		return nil, err
	}
	x, err := s.indexOf(ctx, org)
	if err != nil {
		return nil, err
	}
	q.addSimilar(x.present)
	rows, keys, rare := x.candidates(q.searchTerms(), q.vector, f, near, byWord)
	if q.rarities = rare; len(keys) == 0 {
		return rows, nil
	}
	more, err := s.passageRows(ctx, org, keys)
	return append(rows, more...), wrapError("read passages", err)
}

// passageRows reads passages that are not cached, on two connections at once, because this is the slowest part of a
// search. Inside a transaction there is only one connection.
func (s *Service) passageRows(ctx context.Context, org string, keys []int64) ([]row, error) {
	read := func(keys []int64) (rows []row, err error) {
		seen := map[int64]bool{}
		each := func(r row) error {
			seen[r.key], rows = true, append(rows, r)
			return nil
		}
		if err = vectorsByKey(ctx, s.db.Read(ctx), org, keys, each); err == nil {
			err = factsByKey(ctx, s.db.Read(ctx), org, missingKeys(keys, seen), each)
		}
		return rows, err
	}
	if db.InTx(ctx) || len(keys) < 128 {
		return read(keys)
	}
	var more []row
	var failed error
	var wait sync.WaitGroup
	wait.Go(func() { more, failed = read(keys[len(keys)/2:]) })
	rows, err := read(keys[:len(keys)/2])
	wait.Wait()
	return append(rows, more...), errors.Join(err, failed)
}

func filterOf(in Query) filter {
	f := filter{since: in.Since.UnixMicro(), until: in.Until.UnixMicro(), agent: idHash(in.AgentID), queue: idHash(in.QueueID),
		direction: directionNumber(in.Direction)}
	for _, k := range in.Kinds {
		f.kinds |= 1 << kindNumber(k)
	}
	return f
}

// results reads the best passages and returns one per call. It reads more if passages are dropped.
func (s *Service) results(ctx context.Context, org string, in Query, q *question, order []ranked) ([]Result, error) {
	out := []Result{}
	calls := map[string]bool{}
	for step := 4 * in.Limit; len(order) > 0 && len(out) < in.Limit; {
		part := order[:min(step, len(order))]
		order = order[len(part):]
		items, err := s.items(ctx, org, part)
		if err != nil {
			return nil, err
		}
		people, err := s.contactsOf(ctx, org, items)
		if err != nil {
			return nil, fmt.Errorf("read contacts of results: %w", err)
		}
		for _, r := range part {
			f, ok := items[r.key]
			switch {
			case len(out) == in.Limit || r.score < in.MinScore || r.isUnrelated():
				return out, nil
			case ok && !calls[f.resultKey()] && in.accepts(f):
				calls[f.resultKey()] = true
				out = append(out, s.result(org, q, r, f))
				if p, ok := people[string(f.contactID)]; ok {
					out[len(out)-1].Contact = &p
				}
			}
		}
	}
	return out, nil
}

// resultKey returns the call of a passage; for other entries, their own id.
func (f foundItem) resultKey() string {
	if f.isText {
		return f.id
	}
	return f.callID
}

// isUnrelated reports whether a passage has nothing in common with the query.
func (r ranked) isUnrelated() bool { return r.keyword == 0 && r.whole <= 0 && r.word <= 0 }

func (in Query) accepts(f foundItem) bool {
	return len(in.Tags) == 0 || slices.ContainsFunc(in.Tags, func(t string) bool { return slices.Contains(f.tags.V, t) })
}

func (s *Service) items(ctx context.Context, org string, part []ranked) (map[int64]foundItem, error) {
	keys := make([]int64, len(part))
	for i, r := range part {
		keys[i] = r.key
	}
	items := map[int64]foundItem{}
	each := func(f foundItem) { items[f.key] = f }
	err := itemsByKey(ctx, s.db.Read(ctx), org, keys, each)
	if err == nil {
		err = factItems(ctx, s.db.Read(ctx), org, missingKeys(keys, items), db.At(s.now()), each)
	}
	return items, wrapError("read results", err)
}

// result returns one passage as a result.
func (s *Service) result(org string, q *question, r ranked, f foundItem) Result {
	out := Result{ID: f.id, Kind: f.kind, Score: math.Round(r.score*1000) / 1000, Matched: r.matched, OccurredAt: f.at, Phone: f.phone}
	if f.callID != "" {
		out.CallID = &f.callID
	}
	if !f.isText {
		out.Direction = &f.direction
	}
	if f.kind == KindSMS {
		id := messageID(f.id)
		out.MessageID = &id
	}
	out.Text = excerpt(f.text, func(line string) int {
		n := 0
		for _, t := range s.lexicon.Terms(line) {
			for _, near := range q.nearness(t) {
				n += int(100 * near * near)
			}
		}
		return n
	})
	if f.summary != "" {
		out.AISummary = &f.summary
	}
	if f.agentID != "" {
		out.Agent = &Person{ID: string(f.agentID), Name: string(f.agentName)}
	}
	if f.startMS.Valid {
		start, end := int(f.startMS.Int64), int(f.endMS.Int64)
		out.StartMS, out.EndMS = &start, &end
	}
	if url := s.recordingURL(org, string(f.recordingID)); url != "" {
		if out.StartMS != nil {
			url += fmt.Sprintf("#t=%d", *out.StartMS/1000)
		}
		out.RecordingURL = &url
	}
	return out
}

func (s *Service) recordingURL(org, id string) string {
	if id == "" {
		return ""
	}
	return s.recording(org, id)
}

func wrapError(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
