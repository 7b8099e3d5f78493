package memory

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/observe"
	"soniq/internal/platform/redact"
	"soniq/internal/platform/wiring"
)

// Window is the default period that the call memory covers: six months.
const Window = 183 * 24 * time.Hour

// defaultBudget is the memory limit for the indexes of all organisations, in bytes.
const defaultBudget = 768 << 20

// Config has the dependencies and settings of a Service.
type Config struct {
	DB         *db.DB
	Lexicon    Lexicon
	Embedder   Embedder        // nil: passages are found by their words only
	Clock      clock.Clock     // nil: the system clock
	Window     time.Duration   // zero: six months
	Budget     int             // bytes for indexes; zero: 768 MB
	Recordings Recordings      // nil: no URLs
	Numbers    Numbers         // nil: digits and a leading + are kept
	Redactions redact.Policies // what organisations remove from facts, notes and messages; nil: nothing
}

// Recordings returns the URL of a recording's audio, or "" while it cannot be downloaded.
type Recordings interface {
	RecordingURL(org, recordingID string) string
}

// Numbers normalises a number to the form stored with calls.
type Numbers interface {
	NormalizeNumber(ctx context.Context, org, number string) string
}

// EmbeddingObserver is notified, in the transaction, of a call whose passages were embedded later or by another model.
type EmbeddingObserver interface {
	PassagesEmbedded(ctx context.Context, tx db.Querier, org, callID string, m Model) error
}

// Service stores and searches the call memory. It is safe for concurrent use. The exported fields are set before the
// first request.
type Service struct {
	redactions redact.Policies
	Contacts   Contacts // nil: no contacts

	db             *db.DB
	lexicon        Lexicon
	embedder       Embedder
	now            func() time.Time
	window         time.Duration
	budget         int
	limits         passageLimits
	recording      func(org, recordingID string) string
	phone          func(ctx context.Context, org, number string) string
	embedded       []EmbeddingObserver
	dbIndexes      databaseIndexes
	needsEmbedding atomic.Bool // an embedder has failed: some passages have no vector

	mu      sync.Mutex // guards the fields below
	indexes map[string]*indexSlot
	order   []string // organisations, least recently searched first
	lastKey int64
}

// indexSlot holds an organisation's index.
type indexSlot struct {
	loading sync.Mutex // held while the index is loaded or updated
	index   *index
}

// New returns a service. Call Run to keep embeddings up to date.
func New(c Config) *Service {
	c.Clock = clock.OrSystem(c.Clock)
	wiring.Check(c, "Embedder", "Recordings", "Numbers", "Redactions")
	s := &Service{db: c.DB, lexicon: c.Lexicon, embedder: c.Embedder, now: c.Clock.Now, window: c.Window, budget: c.Budget,
		limits: defaultLimits, recording: func(string, string) string { return "" },
		phone: func(_ context.Context, _, number string) string { return digitsOf(number) }, indexes: map[string]*indexSlot{},
		redactions: redact.OrOff(c.Redactions)}
	if s.window == 0 {
		s.window = Window
	}
	if s.budget == 0 {
		s.budget = defaultBudget
	}
	if c.Recordings != nil {
		s.recording = c.Recordings.RecordingURL
	}
	if c.Numbers != nil {
		s.phone = c.Numbers.NormalizeNumber
	}
	return s
}

// Observe adds an observer. It panics if o is no EmbeddingObserver. Call it before Run.
func (s *Service) Observe(o any) { observe.Require("memory", o, observe.Add(&s.embedded, o)) }

// digitsOf keeps digits and a leading plus; "anonymous" and names of extensions are returned unchanged.
func digitsOf(number string) string {
	out := make([]byte, 0, len(number))
	for i := range len(number) {
		switch c := number[i]; {
		case c >= '0' && c <= '9', c == '+' && len(out) == 0:
			out = append(out, c)
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			return number
		}
	}
	return string(out)
}

// model returns the current embedding; the zero Model if there is none.
func (s *Service) model() Model {
	if s.embedder == nil {
		return Model{}
	}
	return s.embedder.Model()
}

// indexOf returns an organisation's index, up to date with committed data.
func (s *Service) indexOf(ctx context.Context, org string) (*index, error) {
	sl := s.slot(org)
	sl.loading.Lock()
	defer sl.loading.Unlock()
	if m := s.model(); sl.index == nil || sl.index.model.Name != m.Name || sl.index.needsRebuild() {
		sl.index = newIndex(org, m, s.budget/2)
	}
	n, err := s.catchUp(ctx, sl.index)
	if err != nil {
		return nil, fmt.Errorf("read memory of %s: %w", org, err)
	}
	if n > 0 {
		s.evict(org)
	}
	return sl.index, nil
}

// slot returns an organisation's slot and moves it to the end of the order.
func (s *Service) slot(org string) *indexSlot {
	s.mu.Lock()
	defer s.mu.Unlock()
	sl := s.indexes[org]
	if sl == nil {
		sl = &indexSlot{}
		s.indexes[org] = sl
	}
	if at := slices.Index(s.order, org); at >= 0 {
		s.order = slices.Delete(s.order, at, at+1)
	}
	s.order = append(s.order, org)
	return sl
}

// evict drops the least recently used indexes until the rest fits the budget; the index of keep stays.
func (s *Service) evict(keep string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	total := 0
	sizes := map[string]int{}
	for org, sl := range s.indexes {
		if sl.loading.TryLock() {
			if sl.index != nil {
				sizes[org] = sl.index.size()
			}
			sl.loading.Unlock()
		} else if org == keep && sl.index != nil {
			sizes[org] = sl.index.size()
		}
		total += sizes[org]
	}
	for _, org := range slices.Clone(s.order) {
		if total <= s.budget {
			return
		}
		if org == keep {
			continue
		}
		total -= sizes[org]
		delete(s.indexes, org)
		s.order = slices.DeleteFunc(s.order, func(o string) bool { return o == org })
	}
}

// needsRebuild reports whether an index has grown to four times its initial size, because passages past the window
// use memory.
func (x *index) needsRebuild() bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.initialSize > 0 && len(x.keys) > 4*x.initialSize && len(x.keys) > 100*exactBelow
}

// rowsPerRead limits one read, and thus how long the writer of the database waits for a reader's snapshot to end.
const rowsPerRead = 20000

// overlap returns how long a transaction may stay open beside others that commit before it.
func (s *Service) overlap() time.Duration {
	if s.db.Name() == "sqlite" {
		return 0
	}
	return 5 * time.Second
}

// catchUp adds the rows that were committed since the last call and returns how many there were.
func (s *Service) catchUp(ctx context.Context, x *index) (int, error) {
	x.mu.RLock()
	from, known := x.resumeFrom(s.overlap())
	x.mu.RUnlock()
	first := from == 0
	added, asOf := 0, db.At(s.now())
	since := db.At(s.now().Add(-s.window))
	for {
		var batch []row
		last := from
		n := 0
		err := rowsFrom(ctx, s.db.Read(ctx), x.org, from, since, rowsPerRead, func(r row) error {
			n++
			last = r.key + 1
			if !known[r.key] {
				batch = append(batch, r)
			}
			return nil
		})
		if err != nil {
			return added, err
		}
		x.mu.Lock()
		for _, r := range batch {
			x.add(r)
		}
		if first {
			x.initialSize = len(x.keys)
		}
		x.mu.Unlock()
		added += len(batch)
		if n < rowsPerRead {
			x.setAsOf(asOf)
			return added, nil
		}
		from = last
	}
}

// setAsOf records the time up to which everything committed has been read.
func (x *index) setAsOf(asOf db.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.asOf = asOf
}

// WarmIndexes loads the indexes of the largest organisations, up to three quarters of the budget, so that their first
// search is fast. Run it in the background after the start.
func (s *Service) WarmIndexes(ctx context.Context) error {
	orgs, err := orgsBySize(ctx, s.db.Read(ctx), db.At(s.now().Add(-s.window)))
	if err != nil {
		return fmt.Errorf("find what to keep ready: %w", err)
	}
	total := 0
	for _, org := range orgs {
		there, err := s.usesDatabaseIndex(ctx, org)
		if err != nil {
			return err
		}
		if there {
			continue
		}
		x, err := s.indexOf(ctx, org)
		if err != nil {
			return err
		}
		if total += x.size(); total > s.budget*3/4 {
			return nil
		}
	}
	return nil
}

// DropIndex removes an organisation's in-memory index; the next search loads it again.
func (s *Service) DropIndex(org string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.indexes, org)
	s.order = slices.DeleteFunc(s.order, func(o string) bool { return o == org })
	s.dbIndexes.mu.Lock()
	defer s.dbIndexes.mu.Unlock()
	delete(s.dbIndexes.wordStats, org)
}
