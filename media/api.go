package media

import (
	"context"
	"net/netip"
	"time"
)

// Engine owns the packet loops, the recording writers and every open Stream.
type Engine struct{}

// New starts the loops. Close must be called.
func New(cfg Config) (*Engine, error) { return nil, ErrClosed }

// Close closes every stream and recorder left open and waits for all goroutines.
func (e *Engine) Close() {}

// Stats returns a snapshot.
func (e *Engine) Stats() EngineStats { return EngineStats{} }

// Open opens one leg's RTP (even port) and RTCP (odd port) sockets on a random free pair.
func (e *Engine) Open() (*Stream, error) { return nil, ErrNoPorts }

// OpenBeside is Open on the packet loop that serves s: use it for the other leg of a call.
func (e *Engine) OpenBeside(s *Stream) (*Stream, error) { return nil, ErrNoPorts }

// OpenOn is Open bound to another address than the engine's (the IPv6 one, a second interface).
func (e *Engine) OpenOn(bind, advertise netip.Addr) (*Stream, error) { return nil, ErrNoPorts }

// A Stream is one leg's RTP session. All methods are safe for concurrent use.
type Stream struct{}

// StreamStats is what a stream has seen. Received counts accepted packets only.
type StreamStats struct {
	Received, ReceivedBytes uint64 // payload bytes
	Sent, SentBytes         uint64
	Lost                    int64         // RFC 3550 §6.4.1 cumulative, duplicates make it negative
	Jitter                  time.Duration // RFC 3550 §6.4.1 interarrival jitter
	OutOfOrder              uint64
	Ignored                 uint64 // from a source the latch rule refuses
	Malformed               uint64
	DTMF                    uint64         // RFC 4733 events begun, repeats not counted
	First, Last             time.Time      // of received RTP; zero before the first
	Remote                  netip.AddrPort // where RTP is sent now
}

// Local returns the address and RTP port to advertise in SDP; RTCP is the port above.
func (s *Stream) Local() netip.AddrPort { return netip.AddrPort{} }

// Close stops everything on the stream and frees its ports. It may be called twice.
func (s *Stream) Close() {}

// Stats returns a snapshot; it stays readable after Close.
func (s *Stream) Stats() StreamStats { return StreamStats{} }

// Remote says where a leg's media goes and which payload types both sides named.
type Remote struct {
	Addr    netip.AddrPort // RTP, as signalled; an unspecified address sends nothing
	RTCP    netip.AddrPort // zero is Addr's port + 1
	Via     netip.Addr     // where the leg's signalling comes from; trusted like Addr when latching; may be zero
	Strict  bool           // never latch to a third host (trunks with fixed media addresses)
	Formats []Format       // as the other side declared them: payload types we send
	Ours    []Format       // as we declared them: payload types we receive; nil is Formats
}

// SetRemote points the stream at the other side and opens the latch window. See latch.go for the rule.
func (s *Stream) SetRemote(r Remote) {}

// Apply is SetRemote and SetDirection from the outcome of an offer/answer
// exchange; via is the address signalling came from, or zero.
func (s *Stream) Apply(n *Session, via netip.Addr) {}

// SetDirection says whether audio is sent to this leg and accepted from it. Both are on at first.
func (s *Stream) SetDirection(send, recv bool) {}

// Bridge relays each stream's audio and DTMF events to the other, replacing
// bridges either was part of, and re-opens both latch windows.
func Bridge(a, b *Stream) {}

// Unbridge stops relaying between s and whatever it is bridged to.
func (s *Stream) Unbridge() {}

// Send plays 8 kHz audio to the leg, one packet per 20 ms, and returns when the
// last packet is sent. Sends queue behind each other.
func (s *Stream) Send(ctx context.Context, pcm []int16) error { return ErrClosed }

// SetComfort fills the time between Sends with silence packets.
func (s *Stream) SetComfort(on bool) {}

// SendDTMF sends digits 0-9 * # A-D as RFC 4733 events, 100 ms each with 60 ms between.
func (s *Stream) SendDTMF(ctx context.Context, digits string) error { return ErrClosed }

// OnAudio calls f with each received packet decoded to 8 kHz, in order of
// arrival, from one goroutine. The slice is valid until f returns. nil stops it.
func (s *Stream) OnAudio(f func(pcm []int16)) {}

// OnDTMF calls f once per received RFC 4733 event, when it begins. nil stops it.
func (s *Stream) OnDTMF(f func(digit rune)) {}

// RecordConfig says what to record where.
type RecordConfig struct {
	Path        string      // final name; Path.part while running
	Left, Right *Stream     // caller and callee
	Codec       Codec       // of the file; a leg that uses the other one is converted
	Tap         func(Chunk) // live audio off the packet path; may be nil
	OnError     func(error) // called once if the recorder gives up (disk full); may be nil
}

// A Chunk is a piece of both channels at the same time. The slices are valid until the tap returns.
type Chunk struct {
	At          time.Duration // position in the recording
	Left, Right []byte        // mono, one byte per sample at 8 kHz
	Codec       Codec
}

// Result describes a finished recording.
type Result struct {
	Path       string
	Duration   time.Duration
	Size       int64
	SHA256     string // hex, of the whole file
	SampleRate int
	Channels   int
}

// A Recorder writes one call's two channels.
type Recorder struct{}

// Record starts recording.
func (e *Engine) Record(cfg RecordConfig) (*Recorder, error) { return nil, ErrClosed }

// Pause writes silence until Resume; the time line goes on.
func (r *Recorder) Pause() {}

// Resume records again.
func (r *Recorder) Resume() {}

// SetLeft records s as the caller's channel from now on (transfer); nil is silence.
func (r *Recorder) SetLeft(s *Stream) {}

// SetRight records s as the callee's channel from now on; nil is silence.
func (r *Recorder) SetRight(s *Stream) {}

// Err returns why the recorder gave up, or nil.
func (r *Recorder) Err() error { return nil }

// Close finishes the file: WAV header, fsync, rename, fsync of the folder. Then
// it waits until the tap has had everything, or ctx ends. A recorder that gave
// up returns the Result of what was saved together with its error.
func (r *Recorder) Close(ctx context.Context) (Result, error) { return Result{}, ErrClosed }

// Salvage turns a .part left by a crash into a finished recording with what is there.
func Salvage(partPath string) (Result, error) { return Result{}, ErrClosed }
