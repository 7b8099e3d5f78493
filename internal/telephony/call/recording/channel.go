package recording

import (
	"context"
	"errors"
	"fmt"
	"io"

	"soniq/internal/protocol/media/wav"
	"soniq/internal/telephony/call"
)

// channelBuffer is the number of bytes of a file that are read at once to take one channel out of them.
const channelBuffer = 64 << 10

// selectSide returns the whole file for side "", or the channel of the agent or the caller. In outbound calls channel 0 is the agent's,
// because it has the party that called.
func (s *Service) selectSide(ctx context.Context, f io.ReadSeekCloser, org, callID, side string) (io.ReadSeekCloser, error) {
	if side == "" {
		return f, nil
	}
	var direction call.Direction
	const q = `SELECT direction FROM calls WHERE org_id = $1 AND id = $2`
	if err := s.cfg.DB.Read(ctx).QueryRow(ctx, q, org, callID).Scan(&direction); err != nil {
		return nil, fmt.Errorf("read direction of call: %w", err)
	}
	if (side == "agent") == (direction == call.Outbound) {
		return selectChannel(f, 0)
	}
	return selectChannel(f, 1)
}

// selectChannel returns one channel of a WAV file as a mono file; the only one if there is one. The file is read as it is sent.
func selectChannel(f io.ReadSeekCloser, channel int) (io.ReadSeekCloser, error) {
	l, err := wav.Scan(f)
	if err != nil {
		return nil, err
	}
	c := &channelReader{file: f, layout: l, sample: int64(l.Encoding.SampleBytes())}
	if l.Channels > 1 {
		c.channel = channel
	}
	c.header = wav.Header(l.Encoding, 1, l.Rate, c.samples()*c.sample)
	return c, nil
}

// channelReader reads one channel of a WAV file as a mono file. The position of a sample follows from its number, so that any range of
// the mono file
// is read without the rest.
type channelReader struct {
	file     io.ReadSeekCloser
	layout   wav.Layout
	channel  int   // 0 or 1
	sample   int64 // bytes of a sample
	header   [wav.HeaderLen]byte
	position int64  // in the mono file
	buffer   []byte // of the file, allocated by the first read
}

// samples returns the number of samples of the channel.
func (c *channelReader) samples() int64 { return c.layout.Size / (c.sample * int64(c.layout.Channels)) }

// size returns the size of the mono file. Chunks are padded to even length.
func (c *channelReader) size() int64 {
	n := c.samples() * c.sample
	return int64(len(c.header)) + n + n&1
}

// Seek implements io.Seeker.
func (c *channelReader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += c.position
	case io.SeekEnd:
		offset += c.size()
	}
	if offset < 0 {
		return 0, errors.New("negative position")
	}
	c.position = offset
	return offset, nil
}

// Read implements io.Reader.
func (c *channelReader) Read(p []byte) (n int, err error) {
	at := c.position - int64(len(c.header))
	switch {
	case len(p) == 0:
		return 0, nil
	case at < 0:
		n = copy(p, c.header[c.position:])
	case at < c.samples()*c.sample:
		n, err = c.readSamples(p, at)
	case c.position < c.size(): // padding
		p[0], n = 0, 1
	default:
		return 0, io.EOF
	}
	c.position += int64(n)
	return n, err
}

// readSamples reads bytes of the channel's samples from a position on.
func (c *channelReader) readSamples(p []byte, at int64) (int, error) {
	frame := c.sample * int64(c.layout.Channels)
	first, skip := at/c.sample, at%c.sample // skip: bytes of the first sample before the position
	frames := min(c.samples()-first, channelBuffer/frame, (int64(len(p))+skip+c.sample-1)/c.sample)
	if c.buffer == nil {
		c.buffer = make([]byte, channelBuffer)
	}
	if _, err := c.file.Seek(c.layout.Offset+first*frame, io.SeekStart); err != nil {
		return 0, err
	}
	read := c.buffer[:frames*frame]
	if _, err := io.ReadFull(c.file, read); err != nil {
		return 0, err
	}
	n := 0
	for i := int64(c.channel) * c.sample; i < int64(len(read)) && n < len(p); i += frame {
		n += copy(p[n:], read[i+skip:i+c.sample])
		skip = 0
	}
	return n, nil
}

// Close closes the file.
func (c *channelReader) Close() error { return c.file.Close() }
