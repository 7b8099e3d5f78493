package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"soniq/internal/customer/contact"
	"soniq/internal/intelligence/engine"
	"soniq/internal/intelligence/memory"
	"soniq/internal/intelligence/speechmodel"
	"soniq/internal/intelligence/transcript"
	"soniq/internal/messaging/sms"
	"soniq/internal/platform/db"
	"soniq/internal/platform/egress"
	"soniq/internal/protocol/media"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/pbx"
)

// This file joins calls with what understands and remembers them.

// engines are the speech and language engines of this installation.
type engines struct {
	listener transcript.Recognizer
	pool     *transcript.RecognizerPool
	speech   *engine.SpeechCache
	menu     *engine.PhraseRecognizer // nil: callers press keys
	agent    *engine.TurnTranscriber  // nil: voice agents hear nobody
	lexicon  *engine.WordEmbedding
	closers  []func()
}

func (e *engines) close() {
	for _, c := range e.closers {
		c()
	}
	e.closers = nil
}

// ears lets the switch have calls listened to.
type ears struct {
	of    *transcript.Service
	talks func(org, callID string) bool // to a voice agent
}

func (p *Platform) ears() pbx.LiveTranscriber {
	if p.engines.pool == nil {
		return nil
	}
	return ears{p.transcripts, p.assistants.HasConversation}
}

// Listen puts the two sides of a call side by side, as the recording has them, and has them recognised.
func (e ears) Listen(org, callID, path string, c media.RecordConfig) func(media.Chunk) {
	f := transcript.Format{Encoding: transcript.PCMU, Rate: 8000, Channels: 2}
	wide := c.Wideband
	switch {
	case wide:
		f.Encoding, f.Rate = transcript.PCM16, 16000
	case c.Codec == media.PCMA:
		f.Encoding = transcript.PCMA
	}
	live := e.of.StartLive(org, callID, path, f)
	if live == nil {
		return nil
	}
	var frames []byte
	var talked time.Time // with a voice agent: these words are known
	return func(c media.Chunk) {
		if (c.Wide != nil) != wide { // an older file of another kind was taken up
			return
		}
		frames = c.Interleave(frames[:0])
		if now := time.Now(); e.talks(org, callID) {
			talked = now
			f.Silence(frames)
		} else if now.Sub(talked) < tapLag {
			f.Silence(frames)
		}
		live.Write(frames)
	}
}

// tapLag is how much later than it was said a recording is listened to.
const tapLag = 400 * time.Millisecond

func (e ears) End(org, callID string) { e.of.EndLive(org, callID) }

// CanTranscribe reports whether speech can be recognised here.
func (p *Platform) CanTranscribe() bool {
	return p.engines.listener != nil && p.engines.listener.Ready(context.Background()) == nil
}

// zoneOfOrg is the time zone of an organisation.
func (p *Platform) zoneOfOrg(ctx context.Context, org string) *time.Location {
	if o, err := p.orgs.Get(ctx, org); err == nil {
		if zone, err := time.LoadLocation(o.Timezone); err == nil {
			return zone
		}
	}
	return time.UTC
}

// phoneOf writes a number the way calls carry it.
func (p *Platform) phoneOf(ctx context.Context, org, text string) string {
	o, err := p.orgs.Get(ctx, org)
	if err != nil {
		return text
	}
	if e164, ok := number.Parse(text, o.Country); ok && len(text) > 6 {
		return e164
	}
	return text
}

// buildMind constructs the speech engines, transcripts and memory.
func (p *Platform) buildMind(now func() time.Time) error {
	c := p.config
	lexicon := engine.NewWordEmbedding()
	p.engines.lexicon = lexicon
	client := p.guard.Client(engineLimits)
	listener, err := engine.NewRecognizer(engine.Config{Engine: c.Transcriber, Key: c.TransKey, Model: c.TransModel, Client: client, SherpaDir: c.Sherpa, EnglishModelDir: speechmodel.Find()})
	if err != nil {
		return err
	}
	writer, err := engine.NewSummarizer(engine.Config{Engine: c.Writer, Key: c.WriterKey, Model: c.WriterModel, Client: client}, lexicon)
	if err != nil {
		return err
	}
	embedder, err := engine.NewEmbedder(engine.Config{Engine: c.Embedder, Key: c.EmbedKey, Model: c.EmbedModel, Client: client}, lexicon)
	if err != nil {
		return err
	}
	voice, err := engine.NewSynthesizer(engine.Config{Engine: c.Voice, Key: c.VoiceKey, Model: c.VoiceModel, Client: client})
	if err != nil {
		return err
	}
	p.engines.speech = engine.NewSpeechCache(voice, filepath.Join(c.Data, "speech"))
	p.engines.closers = append(p.engines.closers, p.engines.speech.Close)
	p.listen(listener)
	p.listenInMenus(listener)
	p.memory = memory.New(memory.Config{DB: p.db, Lexicon: lexicon, Embedder: embedder, Now: now, Phone: p.phoneOf,
		RecordingURL: p.recordingURL, Embedded: func(ctx context.Context, tx db.Querier, org, callID string, m memory.Model) error {
			return p.transcripts.Embedded(ctx, tx, org, callID, m)
		}})
	p.transcripts = &transcript.Service{DB: p.db, Outbox: p.outbox, Jobs: p.jobs, Calls: p.calls, Memory: p.memory, Pool: p.engines.pool,
		Recognizer: listener, Summarizer: writer, Fallback: engine.NewRuleSummarizer(lexicon), Log: p.log, Now: now, Zone: p.zoneOfOrg,
		Vocabulary: p.vocabulary}
	return nil
}

// recordingURL is where the audio of a recording is fetched.
func (p *Platform) recordingURL(org, id string) string {
	o, err := p.orgs.Get(context.Background(), org)
	if err != nil {
		return ""
	}
	return p.calls.AudioURL(id, o.Sandbox())
}

// listen starts the workers of a recogniser; nil listens to nothing.
func (p *Platform) listen(l transcript.Recognizer) {
	if l == nil {
		return
	}
	p.engines.listener = l
	p.engines.pool = transcript.NewRecognizerPool(l, engine.DefaultWorkers())
	p.engines.closers = append(p.engines.closers, p.engines.pool.Close)
	if c, ok := l.(io.Closer); ok {
		p.engines.closers = append(p.engines.closers, func() { _ = c.Close() })
	}
}

// listenInMenus prepares an ear for callers in menus. Engines on this machine get a worker of their own: callers do not wait for
// recordings.
func (p *Platform) listenInMenus(l transcript.Recognizer) {
	if l == nil {
		return
	}
	var second transcript.Recognizer
	switch x := l.(type) {
	case *engine.PocketSphinx:
		own := engine.NewLowLatencyPocketSphinx()
		p.engines.closers = append(p.engines.closers, own.Close)
		l = own
	case *engine.Sherpa:
		own := x.LowLatency()
		p.engines.closers = append(p.engines.closers, own.Close)
		l = own
		if p.config.Transcriber == "builtin" { // single words are what its model understands worst; starts only when it is asked
			sphinx := engine.NewLowLatencyPocketSphinx()
			p.engines.closers = append(p.engines.closers, sphinx.Close)
			second = sphinx
		}
	}
	p.engines.menu, p.engines.agent = engine.NewPhraseRecognizer(l).WithFallback(second), engine.NewTurnTranscriber(l)
}

// engineLimits bound a request to an engine on another machine.
var engineLimits = egress.Limits{Total: 2 * time.Minute, Body: 16 << 20}

// inspect describes a recording that was finished before a crash but not written down.
func inspect(path string) (call.Audio, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return call.Audio{}, err
	}
	w, err := media.ReadWAV(path)
	if err != nil {
		return call.Audio{}, err
	}
	sum := sha256.Sum256(b)
	a := call.Audio{Size: int64(len(b)), SHA256: hex.EncodeToString(sum[:]), SampleRate: w.Rate, Channels: len(w.PCM)}
	if len(w.PCM) > 0 && w.Rate > 0 {
		a.Duration = time.Duration(len(w.PCM[0])) * time.Second / time.Duration(w.Rate)
	}
	return a, nil
}

// shareMemory has large memories searched in PostgreSQL, where that is wanted and can be.
func (p *Platform) shareMemory(ctx context.Context) error {
	on, err := p.memory.EnableDatabaseIndexes(ctx, p.config.MemoryIndex)
	if err != nil && p.config.MemoryIndex != memory.IndexDatabase {
		p.log.Warn("memory is searched in the process", "err", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("--memory-index database: %w", err)
	}
	if on {
		p.log.Info("large memories are searched in PostgreSQL")
	}
	return nil
}

// rememberNote lets searches find what was written about a call.
func (p *Platform) rememberNote(ctx context.Context, tx db.Querier, org string, n call.Note, phone string) error {
	return p.memory.AddText(ctx, tx, org, memory.TextEntry{Kind: memory.KindNote, Of: n.ID, Phone: phone, CallID: *n.CallID, Text: n.Body, By: n.Author.ID,
		At: n.CreatedAt.Time})
}

// rememberContactNote lets searches find what was written about a contact.
func (p *Platform) rememberContactNote(ctx context.Context, tx db.Querier, org string, n call.Note) error {
	return p.memory.AddText(ctx, tx, org, memory.TextEntry{Kind: memory.KindNote, Of: n.ID, ContactID: *n.ContactID, Text: n.Body, By: n.Author.ID,
		At: n.CreatedAt.Time})
}

// whose tells memory of contacts.
type whose struct{ *contact.Service }

// Named are contacts by id.
func (w whose) Named(ctx context.Context, org string, ids []string) (map[string]memory.Person, error) {
	all, err := w.Service.Named(ctx, org, ids)
	out := make(map[string]memory.Person, len(all))
	for _, c := range all {
		out[c.ID] = memory.Person{ID: c.ID, Name: c.Name, Company: db.Null(c.Company).Ptr()}
	}
	return out, err
}

// rememberMessage lets searches find a text message.
func (p *Platform) rememberMessage(ctx context.Context, tx db.Querier, org string, m sms.Message) error {
	r := memory.TextEntry{Kind: memory.KindSMS, Of: m.ID, Phone: m.Peer(), Text: m.Body, At: m.CreatedAt.Time}
	if m.UserID != nil {
		r.By = *m.UserID
	}
	return p.memory.AddText(ctx, tx, org, r)
}
