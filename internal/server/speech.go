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
	"soniq/internal/intelligence/engine/llm"
	"soniq/internal/intelligence/engine/nlp"
	"soniq/internal/intelligence/engine/speech"
	"soniq/internal/intelligence/memory"
	"soniq/internal/intelligence/speechmodel"
	"soniq/internal/intelligence/transcript"
	"soniq/internal/messaging/sms"
	"soniq/internal/platform/db"
	"soniq/internal/platform/egress"
	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/record"
	"soniq/internal/protocol/media/wav"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/pbx"
)

// Speech and language engines, live transcription and memory.

// engines are the speech and language engines of this installation.
type engines struct {
	listener transcript.Recognizer
	pool     *transcript.RecognizerPool
	speech   *speech.SpeechCache
	menu     *speech.PhraseRecognizer // nil: menus understand keys only
	agent    *speech.TurnTranscriber  // nil: voice agents do not hear callers
	lexicon  *nlp.WordEmbedding
	closers  []func()
}

func (e *engines) close() {
	for _, c := range e.closers {
		c()
	}
	e.closers = nil
}

// liveTranscription starts the live transcription of calls for the switch.
type liveTranscription struct {
	of    *transcript.Service
	talks func(org, callID string) bool // reports whether a call talks to a voice agent
}

// liveTranscriber returns the transcriber of calls in progress, or nil without a recogniser.
func (p *Platform) liveTranscriber() pbx.LiveTranscriber {
	if p.engines.pool == nil {
		return nil
	}
	return liveTranscription{p.transcripts, p.voiceAgents.HasConversation}
}

// Listen returns a function that receives the audio of a call. It interleaves both sides as in the recording, and
// transcribes them.
func (e liveTranscription) Listen(r pbx.RecordedCall, c record.Config) func(record.Chunk) {
	f := transcript.Format{Encoding: transcript.PCMU, Rate: 8000, Channels: 2, Outbound: r.Outbound}
	wide := c.Wideband
	switch {
	case wide:
		f.Encoding, f.Rate = transcript.PCM16, 16000
	case c.Codec == codec.PCMA:
		f.Encoding = transcript.PCMA
	}
	live := e.of.StartLive(r.Org, r.ID, r.Path, f)
	if live == nil {
		return nil
	}
	var frames []byte
	var talked time.Time // time with a voice agent, whose words are known
	return func(c record.Chunk) {
		if (c.Wide != nil) != wide { // the recording continues in a new file of another format
			return
		}
		frames = c.Interleave(frames[:0])
		if now := time.Now(); e.talks(r.Org, r.ID) {
			talked = now
			f.Silence(frames)
		} else if now.Sub(talked) < liveTranscriptionDelay {
			f.Silence(frames)
		}
		live.Write(frames)
	}
}

// liveTranscriptionDelay is the delay of live transcription behind the call.
const liveTranscriptionDelay = 400 * time.Millisecond

func (e liveTranscription) End(org, callID string) { e.of.EndLive(org, callID) }

// CanTranscribe reports whether this installation has a recogniser.
func (p *Platform) CanTranscribe() bool {
	return p.engines.listener != nil && p.engines.listener.Ready(context.Background()) == nil
}

// memoryDependencies implements the dependencies of package memory.
type memoryDependencies struct{ p *Platform }

// NormalizeNumber implements memory.Numbers. It returns a number as calls store it.
func (d memoryDependencies) NormalizeNumber(ctx context.Context, org, text string) string {
	o, err := d.p.orgs.Get(ctx, org)
	if err != nil {
		return text
	}
	return number.Stored(text, o.Country)
}

// buildSpeech constructs the speech engines, transcripts and memory.
func (p *Platform) buildSpeech() error {
	c := p.config
	lexicon := nlp.NewWordEmbedding()
	p.engines.lexicon = lexicon
	client := p.guard.Client(engineLimits)
	listener, err := speech.NewRecognizer(engine.Config{Engine: c.Transcriber, Key: c.TransKey, Model: c.TransModel, Client: client,
		SherpaDir: c.Sherpa, EnglishModelDir: speechmodel.Find()})
	if err != nil {
		return err
	}
	writer, err := llm.NewSummarizer(engine.Config{Engine: c.Summarizer, Key: c.SummarizerKey, Model: c.SummarizerModel, Client: client},
		lexicon)
	if err != nil {
		return err
	}
	embedder, err := llm.NewEmbedder(engine.Config{Engine: c.Embedder, Key: c.EmbedKey, Model: c.EmbedModel, Client: client}, lexicon)
	if err != nil {
		return err
	}
	voice, err := speech.NewSynthesizer(engine.Config{Engine: c.Voice, Key: c.VoiceKey, Model: c.VoiceModel, Client: client})
	if err != nil {
		return err
	}
	p.engines.speech = speech.NewSpeechCache(voice, filepath.Join(c.Data, "speech"))
	p.engines.closers = append(p.engines.closers, p.engines.speech.Close)
	p.startRecognizer(listener)
	p.startMenuRecognizer(listener)
	p.memory = memory.New(memory.Config{DB: p.db, Lexicon: lexicon, Embedder: embedder, Numbers: memoryDependencies{p},
		Recordings: memoryDependencies{p}, Redactions: p.orgs})
	d := transcriptDependencies{p}
	p.transcripts = transcript.New(transcript.Config{DB: p.db, Outbox: p.outbox, Jobs: p.jobs, Calls: p.calls, Recordings: p.recordings,
		Memory: p.memory, Pool: p.engines.pool,
		Recognizer: listener, Summarizer: writer, Fallback: nlp.NewRuleSummarizer(lexicon), Voicemails: voicemailTranscripts{p}, Log: p.log,
		Utterances: d, Zones: p.orgs, Vocabularies: d, Languages: d, Deliveries: d, Redactions: p.orgs})
	p.memory.Observe(p.transcripts)
	return nil
}

// RecordingURL implements memory.Recordings. It returns the URL of the audio of a recording.
func (d memoryDependencies) RecordingURL(org, id string) string {
	o, err := d.p.orgs.Get(context.Background(), org)
	if err != nil {
		return ""
	}
	return d.p.recordings.AudioURL(id, o.Sandbox())
}

// notRecognised returns the reason if speech in a language is not recognised, else "". It returns "" too if the engine cannot tell.
func (p *Platform) notRecognised(language string) string {
	if p.engines.listener == nil {
		return transcript.ErrDisabled.Error()
	}
	return reasonOf(transcript.CheckLanguage(p.engines.listener, language))
}

// startRecognizer starts the workers of a recogniser. Nil starts none.
func (p *Platform) startRecognizer(l transcript.Recognizer) {
	if l == nil {
		return
	}
	p.engines.listener = l
	p.engines.pool = transcript.NewRecognizerPool(l, speech.DefaultWorkers())
	p.engines.closers = append(p.engines.closers, p.engines.pool.Close)
	if c, ok := l.(io.Closer); ok {
		p.engines.closers = append(p.engines.closers, func() { _ = c.Close() })
	}
}

// startMenuRecognizer creates the phrase recogniser of menus. An engine on this machine gets a worker of its own, so that
// callers do not wait for recordings.
func (p *Platform) startMenuRecognizer(l transcript.Recognizer) {
	if l == nil {
		return
	}
	var second transcript.Recognizer
	switch x := l.(type) {
	case *speech.PocketSphinx:
		own := speech.NewLowLatencyPocketSphinx()
		p.engines.closers = append(p.engines.closers, own.Close)
		l = own
	case *speech.Sherpa:
		own := x.LowLatency()
		p.engines.closers = append(p.engines.closers, own.Close)
		l = own
		if p.config.Transcriber == "builtin" { // single words are the weakness of its model; started at first use
			sphinx := speech.NewLowLatencyPocketSphinx()
			p.engines.closers = append(p.engines.closers, sphinx.Close)
			second = sphinx
		}
	}
	p.engines.menu, p.engines.agent = speech.NewPhraseRecognizer(l).WithFallback(second), speech.NewTurnTranscriber(l)
}

// engineLimits limit a request to an engine on another machine.
var engineLimits = egress.Limits{Total: 2 * time.Minute, Body: 16 << 20}

// inspect reads a recording that was complete before a crash, but has no row.
func inspect(path string) (call.Audio, error) {
	f, err := os.Open(path)
	if err != nil {
		return call.Audio{}, err
	}
	defer f.Close()
	l, err := wav.Scan(f)
	if err != nil {
		return call.Audio{}, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return call.Audio{}, err
	}
	sum := sha256.New()
	size, err := io.Copy(sum, f)
	samples := l.Size / int64(l.Channels*l.Encoding.SampleBytes())
	return call.Audio{Size: size, SHA256: hex.EncodeToString(sum.Sum(nil)), SampleRate: l.Rate, Channels: l.Channels,
		Duration: time.Duration(samples) * time.Second / time.Duration(l.Rate)}, err
}

// enableDatabaseSearch enables the search of large memories in PostgreSQL, if it is configured and possible.
func (p *Platform) enableDatabaseSearch(ctx context.Context) error {
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

// indexNote adds the note of a call to the memory.
func (p *Platform) indexNote(ctx context.Context, tx db.Querier, org string, n call.Note, phone string) error {
	return p.memory.AddText(ctx, tx, org, memory.TextEntry{Kind: memory.KindNote, Of: n.ID, Phone: phone, CallID: *n.CallID, Text: n.Body,
		By: n.Author.ID, At: n.CreatedAt.Time})
}

// indexContactNote adds the note of a contact to the memory.
func (p *Platform) indexContactNote(ctx context.Context, tx db.Querier, org string, n call.Note) error {
	return p.memory.AddText(ctx, tx, org, memory.TextEntry{Kind: memory.KindNote, Of: n.ID, ContactID: *n.ContactID, Text: n.Body,
		By: n.Author.ID, At: n.CreatedAt.Time})
}

// contactLookup looks up contacts for package memory.
type contactLookup struct{ *contact.Service }

// Named returns contacts by id.
func (w contactLookup) Named(ctx context.Context, org string, ids []string) (map[string]memory.Person, error) {
	all, err := w.Service.ContactsByID(ctx, org, ids)
	out := make(map[string]memory.Person, len(all))
	for _, c := range all {
		out[c.ID] = memory.Person{ID: c.ID, Name: c.Name, Company: db.Null(c.Company).Ptr()}
	}
	return out, err
}

// MessageStored implements sms.StoreObserver: it adds a text message to the memory.
func (d messageDependencies) MessageStored(ctx context.Context, tx db.Querier, org string, m sms.Message) error {
	r := memory.TextEntry{Kind: memory.KindSMS, Of: m.ID, Phone: m.Peer(), Text: m.Body, At: m.CreatedAt.Time}
	if m.UserID != nil {
		r.By = *m.UserID
	}
	return d.p.memory.AddText(ctx, tx, org, r)
}
