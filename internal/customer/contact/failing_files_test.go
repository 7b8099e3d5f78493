package contact_test

import (
	"context"
	"errors"
	"io"

	"soniq/internal/customer/contact"
)

// failingFiles stores files that fail in the middle of the first read.
type failingFiles struct {
	contact.Files
	after  int64
	opened int
}

func (c *failingFiles) Open(ctx context.Context, name string) (io.ReadSeekCloser, int64, error) {
	f, size, err := c.Files.Open(ctx, name)
	if c.opened++; err != nil || c.opened > 2 {
		return f, size, err
	}
	return &failingReader{f, c.after * int64(c.opened)}, size, nil
}

type failingReader struct {
	io.ReadSeekCloser
	remaining int64
}

func (b *failingReader) Read(p []byte) (int, error) {
	if b.remaining <= 0 {
		return 0, errors.New("the disk is gone")
	}
	n, err := b.ReadSeekCloser.Read(p[:min(int64(len(p)), b.remaining)])
	b.remaining -= int64(n)
	return n, err
}
