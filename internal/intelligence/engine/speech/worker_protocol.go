package speech

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unsafe"

	"soniq/internal/intelligence/transcript"
)

// Protocol between the server and its worker processes: each message is two little-endian uint32, the sizes of header
// and body, then a JSON header and a body of 16-bit samples. These are the maximum sizes in bytes.
const (
	maxHeaderBytes = 1 << 20
	maxBodyBytes   = 16 << 20
)

// workerHello is the first message of a worker: its engine, or the dependency that is missing.
type workerHello struct {
	Engine  transcript.Engine `json:"engine"`
	Memory  int64             `json:"memory,omitempty"` // resident bytes after loading
	Missing string            `json:"missing,omitempty"`
	Help    string            `json:"help,omitempty"`
	Error   string            `json:"error,omitempty"`
}

// sphinxRequest is a clip to recognise; its samples are the body.
type sphinxRequest struct {
	Rate   int  `json:"rate"`
	Narrow bool `json:"narrow"`

	Phrases []string `json:"phrases,omitempty"` // if set, only one of these is expected

	Terms []transcript.Term `json:"terms,omitempty"` // names and other terms that may be said in addition to the words of the language
}

// sphinxResponse has the recognised words.
type sphinxResponse struct {
	Words []transcript.Word `json:"words"`
	Error string            `json:"error,omitempty"`
}

// writeMessage writes one message.
func writeMessage(w io.Writer, header any, body []int16) error {
	h, err := json.Marshal(header)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	b := make([]byte, 8, 8+len(h)+2*len(body))
	binary.LittleEndian.PutUint32(b, uint32(len(h)))
	binary.LittleEndian.PutUint32(b[4:], uint32(2*len(body)))
	b = append(b, h...)
	for _, v := range body {
		b = binary.LittleEndian.AppendUint16(b, uint16(v))
	}
	_, err = w.Write(b)
	return err
}

// ErrTooLong is returned if a message exceeds the maximum size, such as for too much audio.
var ErrTooLong = errors.New("too long")

// readMessage reads one message into header and returns its samples. It returns io.EOF if the peer closed the pipe
// between two messages.
func readMessage(r io.Reader, header any) ([]int16, error) {
	var sizes [8]byte
	if _, err := io.ReadFull(r, sizes[:]); err != nil {
		return nil, err
	}
	h, b := binary.LittleEndian.Uint32(sizes[:]), binary.LittleEndian.Uint32(sizes[4:])
	if h > maxHeaderBytes || b > maxBodyBytes {
		return nil, fmt.Errorf("%w: message of %d + %d bytes", ErrTooLong, h, b)
	}
	buf := make([]byte, h+b)
	if _, err := io.ReadFull(r, buf); err != nil {
		return nil, fmt.Errorf("read message: %w", err)
	}
	if err := json.Unmarshal(buf[:h], header); err != nil {
		return nil, fmt.Errorf("decode message: %w", err)
	}
	return decodeSamples(buf[h:]), nil
}

// decodeSamples decodes little-endian 16-bit samples.
func decodeSamples(b []byte) []int16 {
	out := make([]int16, len(b)/int(unsafe.Sizeof(int16(0))))
	for i := range out {
		out[i] = int16(binary.LittleEndian.Uint16(b[2*i:]))
	}
	return out
}
