package record

import (
	"bufio"
	"errors"
	"io"
	"math"
	"os"

	"soniq/internal/protocol/media/wav"
)

// downmixSuffix marks the one-channel file that is made from the two channels of a .part. The .part stays until that
// file is finished. After a crash the downmix is repeated.
const downmixSuffix = ".mono" + PartSuffix

// downmix writes the sum of both channels of an open .part, of which size bytes are complete, to a file in the same
// directory.
func (l layout) downmix(f *os.File, path string, size int64) (folded *os.File, n int64, err error) {
	if folded, err = os.OpenFile(path+downmixSuffix, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600); err != nil {
		return nil, 0, err
	}
	out := bufio.NewWriterSize(folded, flushScratch)
	h := l.header(0)
	_, err = out.Write(h[:])
	if err == nil {
		err = l.downmixSamples(out, bufio.NewReaderSize(io.NewSectionReader(f, wav.HeaderLen, size-wav.HeaderLen), flushScratch))
	}
	if err = errors.Join(err, out.Flush()); err != nil {
		_ = folded.Close()
		return nil, 0, err
	}
	frames := (size - wav.HeaderLen) / (2 * l.width())
	return folded, wav.HeaderLen + frames*l.width(), nil
}

// downmixSamples writes the saturated sum of each pair of samples.
func (l layout) downmixSamples(out *bufio.Writer, in *bufio.Reader) error {
	w := int(l.width())
	pair, one := make([]byte, 2*w), make([]byte, w)
	for {
		if _, err := io.ReadFull(in, pair); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		both := int(wav.Sample(pair, l.encoding)) + int(wav.Sample(pair[w:], l.encoding))
		wav.PutSample(one, int16(max(math.MinInt16, min(both, math.MaxInt16))), l.encoding)
		if _, err := out.Write(one); err != nil {
			return err
		}
	}
}
