package transcript

import (
	"errors"
	"io"
	"os"
)

// growing reads the samples of a recording that is still being written, or was closed just now, as if they lay in a
// file by themselves. The file is opened for each read: it is read only when more speech waits than fits into memory.
type growing string

// ReadAt implements io.ReaderAt; offset 0 is the first sample.
func (g growing) ReadAt(p []byte, off int64) (int, error) {
	f, err := os.Open(string(g) + ".part")
	closed := os.IsNotExist(err)
	if closed {
		f, err = os.Open(string(g))
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	start, channels, err := dataStart(f)
	if err != nil {
		return 0, err
	}
	if closed && channels == 1 {
		return 0, errFolded
	}
	return f.ReadAt(p, start+off)
}

// errFolded: the two channels that were listened to are one by now.
var errFolded = errors.New("the recording has one channel")

// dataStart finds where the samples of a WAV file begin; the header of a file being written says that there are none.
func dataStart(f *os.File) (at int64, channels int, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, 0, err
	}
	format, at, _, err := findData(io.NewSectionReader(f, 0, info.Size()))
	return at, format.Channels, err
}
