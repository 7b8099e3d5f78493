package transcript

import (
	"errors"
	"io"
	"os"
)

// liveFileReader reads the samples of a recording that is being written or was just closed, by offset from the first
// sample. It opens the file for each read, because reads are rare: only speech that does not fit into memory is read.
type liveFileReader string

// ReadAt implements io.ReaderAt; offset 0 is the first sample.
func (g liveFileReader) ReadAt(p []byte, off int64) (int, error) {
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
		return 0, errDownmixed
	}
	return f.ReadAt(p, start+off)
}

// errDownmixed is returned if the two channels have been mixed into one meanwhile.
var errDownmixed = errors.New("the recording has one channel")

// dataStart returns the position of the samples of a WAV file; in the header of a file being written their size is 0.
func dataStart(f *os.File) (at int64, channels int, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, 0, err
	}
	format, at, _, err := findData(io.NewSectionReader(f, 0, info.Size()))
	return at, format.Channels, err
}
