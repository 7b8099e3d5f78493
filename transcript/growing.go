package transcript

import (
	"io"
	"os"
)

// growing reads the samples of a recording that is still being written, or was closed just now, as if they lay in a
// file by themselves. The file is opened for each read: it is read only when more speech waits than fits into memory.
type growing string

// ReadAt implements io.ReaderAt; offset 0 is the first sample.
func (g growing) ReadAt(p []byte, off int64) (int, error) {
	f, err := os.Open(string(g) + ".part")
	if os.IsNotExist(err) {
		f, err = os.Open(string(g))
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	start, err := dataStart(f)
	if err != nil {
		return 0, err
	}
	return f.ReadAt(p, start+off)
}

// dataStart finds where the samples of a WAV file begin; the header of a file being written says that there are none.
func dataStart(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	_, at, _, err := findData(io.NewSectionReader(f, 0, info.Size()))
	return at, err
}
