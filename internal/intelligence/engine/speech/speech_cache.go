package speech

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"soniq/internal/intelligence/transcript"
	"soniq/internal/protocol/media/wav"
)

// SpeechCache synthesises texts and caches the audio as files: a text is synthesised once per organisation.
// Organisations share no files. It is safe for concurrent use.
type SpeechCache struct {
	synthesizer Synthesizer
	dir         string
	maxBytes    int64
	mu          sync.Mutex // guards the three below
	inFlight    map[string]*pendingSynthesis
	size        int64
	sizeKnown   bool // size has been measured

	work sync.WaitGroup
}

type pendingSynthesis struct {
	done chan struct{}
	err  error
}

const (
	// MaxSpeechBytes is the longest text that is synthesised, in bytes.
	MaxSpeechBytes   = 5000
	maxCacheBytes    = 512 << 20 // total size of the cache; the least recently used files are removed first
	synthesisTimeout = 2 * time.Minute
	announcementPeak = 0.7 * 32767 // level of the loudest sample of an announcement
)

// ErrNoVoice is returned if text to speech is switched off.
var ErrNoVoice = &transcript.MissingDependency{Problem: "text to speech is switched off", Remedy: "set SONIQ_VOICE=builtin"}

// NewSpeechCache returns a cache of a synthesiser's audio in a folder. With a nil synthesiser every text gives
// ErrNoVoice.
func NewSpeechCache(v Synthesizer, dir string) *SpeechCache {
	return &SpeechCache{synthesizer: v, dir: dir, maxBytes: maxCacheBytes, inFlight: map[string]*pendingSynthesis{}}
}

// Ready returns an error that names the missing dependency if speech cannot be synthesised.
func (s *SpeechCache) Ready(ctx context.Context) error {
	if s.synthesizer == nil {
		return ErrNoVoice
	}
	return s.synthesizer.Ready(ctx)
}

// Close closes the synthesiser and waits for texts in progress.
func (s *SpeechCache) Close() {
	if c, ok := s.synthesizer.(io.Closer); ok {
		_ = c.Close()
	}
	s.work.Wait()
}

// DeleteOrganization removes the cached audio of an organisation.
func (s *SpeechCache) DeleteOrganization(org string) error {
	if !orgIDPattern.MatchString(org) {
		return nil
	}
	return os.RemoveAll(filepath.Join(s.dir, org))
}

var orgIDPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// File returns the path of a WAV file (16 bits, mono) with the spoken text; voice and language may be "". The file is
// never changed, but may be removed if it was not used for a long time: open it soon. If a dependency is missing the
// error is a *transcript.MissingDependency.
func (s *SpeechCache) File(ctx context.Context, org, text, voice, language string) (path string, err error) {
	text = strings.TrimSpace(text)
	switch {
	case s.synthesizer == nil:
		return "", ErrNoVoice
	case text == "" || len(text) > MaxSpeechBytes:
		return "", fmt.Errorf("speak: the text must have 1 to %d bytes", MaxSpeechBytes)
	case !orgIDPattern.MatchString(org):
		return "", fmt.Errorf("speak: %q is no organisation", org)
	}
	sum := sha256.Sum256([]byte(s.synthesizer.Identity() + "\x00" + voice + "\x00" + language + "\x00" + text))
	path = filepath.Join(s.dir, org, hex.EncodeToString(sum[:16])+".wav")
	if s.cached(path) {
		return path, nil
	}
	return path, s.singleflight(ctx, path, func(ctx context.Context) error {
		if s.cached(path) { // another caller's synthesis has ended since the check above
			return nil
		}
		return s.speak(ctx, path, text, voice, language)
	})
}

// CheckText returns why a text cannot be spoken with a voice in a language, as far as that is known without speaking
// it; nil otherwise.
func (s *SpeechCache) CheckText(text, voice, language string) error {
	if s.synthesizer == nil {
		return ErrNoVoice
	}
	if c, ok := s.synthesizer.(interface {
		CheckText(text, voice, language string) error
	}); ok {
		return c.CheckText(text, voice, language)
	}
	return nil
}

// CheckLanguage returns an error if the engine does not know a language, or if there is none.
func (s *SpeechCache) CheckLanguage(language string) error {
	if s.synthesizer == nil {
		return ErrNoVoice
	}
	return transcript.CheckLanguage(s.synthesizer, language)
}

// cached reports whether a file exists, and updates its time of last use.
func (s *SpeechCache) cached(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	if now := time.Now(); now.Sub(info.ModTime()) > time.Hour {
		_ = os.Chtimes(path, now, now) // if this fails the file is only removed earlier
	}
	return true
}

// singleflight runs do for a path, or waits for a run in progress. The run continues for other waiters if the context
// of one ends.
func (s *SpeechCache) singleflight(ctx context.Context, path string, do func(context.Context) error) error {
	s.mu.Lock()
	m, begun := s.inFlight[path]
	if !begun {
		m = &pendingSynthesis{done: make(chan struct{})}
		s.inFlight[path] = m
		work, cancel := context.WithTimeout(context.WithoutCancel(ctx), synthesisTimeout)
		s.work.Go(func() {
			defer cancel()
			m.err = do(work)
			s.mu.Lock()
			delete(s.inFlight, path)
			s.mu.Unlock()
			close(m.done)
		})
	}
	s.mu.Unlock()
	select {
	case <-m.done:
		return m.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// SynthesizeUncached synthesises a text without caching it. It returns mono samples and their rate.
func (s *SpeechCache) SynthesizeUncached(ctx context.Context, text, voice, language string) (pcm []int16, rate int, err error) {
	switch {
	case s.synthesizer == nil:
		return nil, 0, ErrNoVoice
	case text == "" || len(text) > MaxSpeechBytes:
		return nil, 0, fmt.Errorf("speak: the text must have 1 to %d bytes", MaxSpeechBytes)
	}
	if pcm, rate, err = s.synthesizer.Synthesize(ctx, text, voice, language); err != nil {
		return nil, 0, fmt.Errorf("speak: %w", err)
	}
	normalizeLevel(pcm)
	return pcm, rate, nil
}

func (s *SpeechCache) speak(ctx context.Context, path, text, voice, language string) error {
	pcm, rate, err := s.synthesizer.Synthesize(ctx, text, voice, language)
	if err != nil {
		return fmt.Errorf("speak: %w", err)
	}
	normalizeLevel(pcm)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("keep speech: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".speech-*")
	if err != nil {
		return fmt.Errorf("keep speech: %w", err)
	}
	defer os.Remove(f.Name())
	if err := errors.Join(f.Close(), wav.Write(f.Name(), wav.Audio{Rate: rate, PCM: [][]int16{pcm}}, wav.PCM16)); err != nil {
		return fmt.Errorf("keep speech: %w", err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("keep speech: %w", err)
	}
	s.addSize(int64(2 * len(pcm)))
	return nil
}

// normalizeLevel scales samples to the level that all announcements have.
func normalizeLevel(pcm []int16) {
	peak := 0
	for _, v := range pcm {
		peak = max(peak, int(v), -int(v))
	}
	if peak == 0 {
		return
	}
	gain := min(announcementPeak/float64(peak), 8)
	for i, v := range pcm {
		pcm[i] = int16(float64(v) * gain)
	}
}

// addSize adds the size of a new file, and prunes the cache if it is too large.
func (s *SpeechCache) addSize(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.size += n
	if s.sizeKnown && s.size <= s.maxBytes {
		return
	}
	s.sizeKnown = true
	s.size = prune(s.dir, s.maxBytes)
}

// cachedFile is a file of the cache.
type cachedFile struct {
	path string
	size int64
	used time.Time
}

// prune removes the least recently used files if the cache is larger than most bytes, until nine tenths of that are
// left. It returns the remaining size.
func prune(dir string, most int64) (size int64) {
	var all []cachedFile
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // unreadable files are not counted
		}
		if info, err := d.Info(); err == nil {
			all = append(all, cachedFile{path, info.Size(), info.ModTime()})
			size += info.Size()
		}
		return nil
	})
	if size <= most {
		return size
	}
	slices.SortFunc(all, func(a, b cachedFile) int { return a.used.Compare(b.used) })
	for _, k := range all {
		if size <= most*9/10 {
			break
		}
		if os.Remove(k.path) == nil {
			size -= k.size
		}
	}
	return size
}
